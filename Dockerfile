# The webhook and the command line. What is installed is pinned in constraints.txt, the build's own tools aside.
# It runs as nobody in particular, writes nothing but /tmp, and needs no root file system that can be written.
FROM python:3.11-slim AS build
WORKDIR /src
RUN python -m venv /opt/bayplan
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY webhook ./webhook
COPY planner ./planner
COPY certs ./certs
COPY policies ./policies
COPY manifests ./manifests
RUN /opt/bayplan/bin/pip install --no-cache-dir --disable-pip-version-check --constraint constraints.txt .

FROM python:3.11-slim
ENV PATH=/opt/bayplan/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
COPY --from=build /opt/bayplan /opt/bayplan
COPY policies /policies
USER 65532:65532
EXPOSE 8443
ENTRYPOINT ["bayplan"]
CMD ["--help"]
