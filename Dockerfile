FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    NUMBA_CACHE_DIR=/opt/polymargin/kernels \
    POLYMARGIN_HOME=/var/lib/polymargin

WORKDIR /opt/polymargin

# The dependencies change more rarely than the code: a layer of their own.
COPY pyproject.toml constraints.txt ./
RUN pip install --constraint constraints.txt setuptools wheel \
    && python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; e = p['optional-dependencies']; \
print('\n'.join(x for x in p['dependencies'] + e['learn'] + e['server'] + e['openid'] + e['s3'] + e['gs'] if not x.startswith('polymargin')))" > /tmp/requirements.txt \
    && pip install --constraint constraints.txt --requirement /tmp/requirements.txt \
    && rm /tmp/requirements.txt

COPY setup.py README.md LICENSE ./
COPY polymargin polymargin
COPY solvers solvers
COPY app app
COPY workers workers
COPY migrations migrations
RUN pip install --constraint constraints.txt --no-deps --no-build-isolation . \
    && rm -r build polymargin.egg-info \
    && useradd --system --create-home --uid 10001 polymargin \
    && mkdir -p "$NUMBA_CACHE_DIR" "$POLYMARGIN_HOME" \
    && chown polymargin "$NUMBA_CACHE_DIR" "$POLYMARGIN_HOME"

USER polymargin

# Numba keys its cache by the processor's name and features too: on another processor the first job compiles again.
RUN python -P -m polymargin.app.operation.warm

VOLUME /var/lib/polymargin
EXPOSE 8000

HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]

CMD ["polymargin", "api", "--host", "0.0.0.0"]
