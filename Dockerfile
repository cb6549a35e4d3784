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
    && python -c "import tomllib; print('\n'.join(tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies']))" \
       > /tmp/requirements.txt \
    && pip install --constraint constraints.txt --requirement /tmp/requirements.txt \
    && rm /tmp/requirements.txt

COPY README.md LICENSE ./
COPY solvers solvers
COPY app app
COPY workers workers
COPY migrations migrations
RUN pip install --constraint constraints.txt --no-deps --no-build-isolation --editable . \
    && useradd --system --create-home --uid 10001 polymargin \
    && mkdir -p "$NUMBA_CACHE_DIR" "$POLYMARGIN_HOME" \
    && chown polymargin "$NUMBA_CACHE_DIR" "$POLYMARGIN_HOME"

USER polymargin

# Numba keys its cache by the processor's name and features too: on another processor the first job compiles again.
RUN python -m app.warm

VOLUME /var/lib/polymargin
EXPOSE 8000

HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]

CMD ["python", "-m", "app.server", "--host", "0.0.0.0", "--port", "8000", "--graceful-seconds", "10"]
