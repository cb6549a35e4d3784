from solvers.compilation import cache, linked_code

cache.install()
linked_code.install()
