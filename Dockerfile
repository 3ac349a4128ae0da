# syntax=docker/dockerfile:1
# The live service. docs/engineers/containers.md says how to run it.
FROM python:3.13-slim-bookworm AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src ./src
RUN python -m venv /app \
    && /app/bin/pip install --no-cache-dir -c constraints.txt ".[service,postgres]"

FROM python:3.13-slim-bookworm
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin saferank \
    && install -d -o saferank -g saferank /data /cache
COPY --from=build /app /app
# Compiled code is for one kind of CPU, the same at build and at run.
ARG CPU=x86-64-v3
ENV PATH=/app/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    NUMBA_CACHE_DIR=/cache \
    NUMBA_CPU_NAME=$CPU \
    NUMBA_CPU_FEATURES= \
    SAFERANK_SERVE_STORE=/data
USER 10001
WORKDIR /data
RUN saferank compile --for service
VOLUME ["/data", "/cache"]
EXPOSE 8080
STOPSIGNAL SIGTERM
# With a cache volume of an older image the first start compiles, which takes up to a minute; it is kept in /cache.
HEALTHCHECK --interval=10s --timeout=3s --start-period=120s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/readyz', timeout=2)"]
CMD ["saferank", "serve"]
