from solvers.compile_cache import install

install()
