# The webhook and the command line. All that is installed is pinned with its hashes (locks/, by `make lock`): what the
# webhook needs, and in the first stage what builds it. The base is pinned by digest (`make base` renews it).
# It runs as nobody in particular, writes nothing but /tmp, and needs no root file system that can be written.
ARG BASE=python:3.11.16-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7

FROM ${BASE} AS build
WORKDIR /src
COPY locks ./locks
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
RUN python -m venv /opt/build \
 && python -m venv --without-pip /opt/bayplan \
 && /opt/build/bin/pip install --require-hashes --requirement locks/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY webhook ./webhook
COPY planner ./planner
COPY certs ./certs
COPY policies ./policies
COPY manifests ./manifests
COPY overlays ./overlays
# --no-deps: the lock names all that is needed, and leaves out what cel-python asks for and nothing runs.
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /opt/build/bin/pip --python /opt/bayplan install --no-deps --require-hashes --requirement locks/image.txt \
 && /opt/build/bin/pip --python /opt/bayplan install --no-deps --no-index /wheels/*.whl

FROM ${BASE}
# A home that can be written: the uid has no entry in /etc/passwd, and / is read-only.
ENV PATH=/opt/bayplan/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
COPY --from=build /opt/bayplan /opt/bayplan
COPY policies /policies
USER 65532:65532
EXPOSE 8443
ENTRYPOINT ["bayplan"]
CMD ["--help"]
