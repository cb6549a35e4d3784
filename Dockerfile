# Images of the client, of the API server and of the workers: docker build --target client, server or worker.

FROM python:3.12-slim AS python

FROM python AS builder
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends binutils && rm -r /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml constraints.txt ./
RUN python -m venv --without-pip /opt/polymargin \
    && pip install --constraint constraints.txt setuptools

FROM builder AS wheel
COPY setup.py README.md LICENSE ./
COPY polymargin polymargin
COPY solvers solvers
COPY app app
COPY workers workers
COPY migrations migrations
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels .

FROM builder AS client-files
COPY --from=wheel /wheels /wheels
RUN pip --python /opt/polymargin/bin/python install --no-compile --constraint constraints.txt /wheels/*.whl

FROM builder AS service-files
# The dependencies change more rarely than the code: a layer of their own.
RUN python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; e = p['optional-dependencies']; \
print('\n'.join(x for x in p['dependencies'] + e['learn'] + e['server'] + e['openid'] + e['s3'] + e['gs'] if not x.startswith('polymargin')))" > /tmp/requirements.txt \
    && pip --python /opt/polymargin/bin/python install --no-compile --constraint constraints.txt --requirement /tmp/requirements.txt
# What nothing here loads: tests, headers, symbols of debuggers, Arrow's remote parts, parts of SciPy, other services of AWS
# than those of S3 and of its credentials, formats of pictures that no figure has, Celery's shell, and reloading. Libraries in
# folders *.libs were rearranged when their wheels were made, and strip breaks them.
WORKDIR /opt/polymargin/lib/python3.12/site-packages
RUN find . -depth -type d '(' -name tests -o -name test ')' -exec rm -r '{}' + \
    && find . -type f '(' -name '*.pyi' -o -name '*.p[xy][xdi]' -o -name '*.[ach]' -o -name '*.[ch]pp' -o -name '*.cc' ')' -delete \
    && find plotly -mindepth 1 -maxdepth 1 '!' -name __init__.py '!' -name package_data -exec rm -r '{}' + \
    && find botocore/data -mindepth 1 -maxdepth 1 -type d '!' -name s3 '!' -name signin '!' -name 'sso*' '!' -name sts -exec rm -r '{}' + \
    && rm -r plotly/package_data/widgetbundle.js pyarrow/*flight* pyarrow/libarrow_s3* pyarrow/_s3fs* \
        pyarrow/libarrow_python.so pyarrow/libarrow_python.so.*.*.* scipy/datasets scipy/io scipy/odr scipy/signal \
        matplotlib/mpl-data/sample_data matplotlib/mpl-data/fonts/afm matplotlib/mpl-data/fonts/pdfcorefonts \
        PIL/_avif* PIL/_imagingcms* PIL/_imagingft* PIL/_webp* pillow.libs/libavif* pillow.libs/libfreetype* \
        pillow.libs/libharfbuzz* pillow.libs/liblcms2* pillow.libs/libsharpyuv* pillow.libs/libwebp* \
    && pip --python /opt/polymargin/bin/python uninstall --yes click-repl prompt-toolkit wcwidth watchfiles \
    && find . -name '*.so*' '!' -path '*.libs/*' '!' -name '*pool.*' -exec strip --strip-unneeded '{}' +
COPY --from=wheel /wheels /wheels
RUN pip --python /opt/polymargin/bin/python install --no-compile --no-deps /wheels/*.whl

# The base without what only installs. Copied into an empty image, since a layer on top would not make it smaller.
FROM python AS system-files
WORKDIR /usr/local/lib/python3.12
RUN useradd --create-home --uid 10001 polymargin \
    && rm -rf ensurepip idlelib lib2to3 pydoc_data tkinter turtledemo site-packages/pip* /usr/local/bin/pip* \
        /usr/local/bin/idle* /usr/local/bin/pydoc* /usr/local/include /usr/bin/perl* /usr/lib/*/perl-base /usr/lib/*/gconv

FROM scratch AS system
# hadolint ignore=DL3067
COPY --from=system-files / /
ENV PATH=/opt/polymargin/bin:/usr/local/bin:/usr/bin:/bin \
    LANG=C.UTF-8 \
    PYTHONUNBUFFERED=1

FROM system AS client
ENV PYTHONDONTWRITEBYTECODE=1
COPY --from=client-files /opt/polymargin /opt/polymargin
USER 10001
ENTRYPOINT ["polymargin"]

FROM system AS service
# The root may be read-only: what is compiled is kept on the second volume.
ENV NUMBA_CACHE_DIR=/var/cache/polymargin/compiled \
    PYTHONPYCACHEPREFIX=/var/cache/polymargin/bytecode \
    MPLCONFIGDIR=/var/cache/polymargin/matplotlib \
    POLYMARGIN_HOME=/var/lib/polymargin
COPY --from=service-files /opt/polymargin /opt/polymargin
RUN install --directory --owner polymargin /var/lib/polymargin /var/cache/polymargin
USER 10001
VOLUME ["/var/lib/polymargin", "/var/cache/polymargin"]

FROM service AS worker
# A worker serves no port: it is healthy while its command is the container's first process.
HEALTHCHECK --interval=10s --timeout=5s CMD ["grep", "-q", "workers", "/proc/1/cmdline"]
CMD ["polymargin", "worker", "--queue", "general"]

FROM service AS server
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["polymargin", "api", "--host", "0.0.0.0"]
