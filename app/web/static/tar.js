// Packs files into one tar archive (POSIX ustar) without reading them: the archive refers to them, as the browser sends it.

const BLOCK = 512;
// what a name may have in a header, beside the folder
const LONGEST_NAME = 80;

function header(name, n_bytes) {
  const block = new Uint8Array(BLOCK);
  const write = (at, text) => block.set(new TextEncoder().encode(text), at);
  write(0, name);
  write(100, "0000644\0");
  write(108, "0000000\0");
  write(116, "0000000\0");
  write(124, `${n_bytes.toString(8).padStart(11, "0")}\0`);
  write(136, "00000000000\0");
  write(148, "        ");
  write(156, "0");
  write(257, "ustar\x0000");
  const sum = block.reduce((total, byte) => total + byte, 0);
  write(148, `${sum.toString(8).padStart(6, "0")}\0 `);
  return block;
}

// An archive of files by their folders, the same for the same files; it is named like the first.
export function tarOf(files) {
  const parts = [];
  for (const [folder, file] of Object.entries(files)) {
    // the end of a name has its extension; the service knows a file by its folder
    const name = file.name.replace(/[^A-Za-z0-9._-]/g, "_").slice(-LONGEST_NAME);
    parts.push(header(`${folder}/${name}`, file.size), file, new Uint8Array((BLOCK - (file.size % BLOCK)) % BLOCK));
  }
  parts.push(new Uint8Array(2 * BLOCK));
  const each = Object.values(files);
  return new File(parts, `${each[0].name}.tar`, { lastModified: Math.max(...each.map(({ lastModified }) => lastModified)) });
}
