"""Files sent in pieces: after an interruption the pieces that arrived are not sent again."""

import base64
import hashlib
from pathlib import Path

from app.datasets.schemas import NewUpload, PartialUpload
from app.remote.errors import ClientError, ConflictError, UnreachableError, UploadInterruptedError
from app.remote.progress import Update
from app.remote.transport import Resource

PIECE_BYTES = 8 << 20
# a smaller file is sent at once
FROM_BYTES = 32 << 20
_ATTEMPTS = 5


class Uploads(Resource):
    """Uploads in pieces, which the service keeps for a while."""

    def begin(self, size_bytes: int) -> PartialUpload:
        """A file of so many bytes, of which none has come."""
        return self._transport.post(PartialUpload, "/uploads", NewUpload(size_bytes=size_bytes))

    def get(self, id: str) -> PartialUpload:
        """How many bytes have come."""
        return self._transport.get(PartialUpload, f"/uploads/{id}")

    def send(self, id: str, offset: int, piece: bytes) -> PartialUpload:
        """Send the piece that begins at ``offset``, with its hash.

        Raises
        ------
        ConflictError
            So many bytes have not come, or more than that.
        """
        digest = base64.b64encode(hashlib.sha256(piece).digest()).decode()
        headers = {"Upload-Offset": str(offset), "Upload-Checksum": f"sha256 {digest}"}
        answer = self._transport.send("PATCH", f"/uploads/{id}", content=piece, headers=headers)
        return self._transport.parsed(PartialUpload, answer.content)

    def discard(self, id: str) -> None:
        """Forget an upload and what has come of it."""
        self._transport.send("DELETE", f"/uploads/{id}")

    def send_file(self, file: Path, id: str | None = None, sent: Update | None = None) -> tuple[str, str]:
        """Send a whole file, or what is missing of the upload ``id``.

        Parameters
        ----------
        file : Path
        id : str, optional
        sent : callable, optional
            Is called with the number of bytes that have come, after each piece.

        Returns
        -------
        id : str
            By which a request names the upload.
        sha256 : str
            Of the file.

        Raises
        ------
        UploadInterruptedError
            The service was not reached any more; ``upload`` is the id to go on with.
        """
        size = file.stat().st_size
        state = self.begin(size) if id is None else self.get(id)
        if state.size_bytes != size:
            raise ClientError(f"The upload {state.id} has {state.size_bytes} bytes, but the file has {size}")
        failures = 0
        with file.open("rb") as opened:
            while state.offset < size:
                opened.seek(state.offset)
                piece = opened.read(min(PIECE_BYTES, state.max_piece_bytes))
                if not piece:
                    raise ClientError(f"{file} was truncated during the upload")
                before = state.offset
                try:
                    state = self._next(state, piece)
                except UnreachableError as error:
                    raise UploadInterruptedError(state.id, state.offset, size, error) from None
                if sent is not None:
                    sent(state.offset, "")
                failures = 0 if state.offset > before else failures + 1
                if failures == _ATTEMPTS:
                    raise ClientError(
                        f"The upload {state.id} makes no progress: {state.offset} of {size} bytes have arrived"
                    )
            opened.seek(0)
            return state.id, hashlib.file_digest(opened, "sha256").hexdigest()

    def _next(self, state: PartialUpload, piece: bytes) -> PartialUpload:
        """After a piece was sent, or the state that the service reports if it refuses the piece."""
        try:
            return self.send(state.id, state.offset, piece)
        except ConflictError:  # an answer was lost, or an attempt before is still being read
            self._transport.wait(1)
            return self.get(state.id)
