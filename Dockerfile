# The workbench and its REST API, as a user without rights.  docs/how-to/workbench.md has the commands.
FROM python:3.12-slim

ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 UV_NO_CACHE=1 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src ./src
RUN pip install uv==0.13.8 \
    && uv pip install --system --torch-backend=cpu --constraint constraints.txt ".[serve]" \
    && rm -rf /source \
    && useradd --uid 10001 --create-home --home-dir /app --shell /usr/sbin/nologin steadygaze

USER 10001
WORKDIR /app
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["steadygaze", "serve"]
CMD ["--help"]
