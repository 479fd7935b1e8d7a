# The webhook and the command line. What is installed is pinned in constraints.txt, the build backend too. The base is
# a tag; where a build must repeat to the byte, give its digest: --build-arg BASE=python:3.11-slim@sha256:…
# It runs as nobody in particular, writes nothing but /tmp, and needs no root file system that can be written.
ARG BASE=python:3.11-slim

FROM ${BASE} AS build
WORKDIR /src
COPY constraints.txt ./
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
RUN python -m venv /opt/build \
 && python -m venv --without-pip /opt/bayplan \
 && /opt/build/bin/pip install --constraint constraints.txt hatchling
COPY pyproject.toml README.md LICENSE ./
COPY webhook ./webhook
COPY planner ./planner
COPY certs ./certs
COPY policies ./policies
COPY manifests ./manifests
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /opt/build/bin/pip --python /opt/bayplan install --constraint constraints.txt /wheels/*.whl

FROM ${BASE}
# A home that can be written: the uid has no entry in /etc/passwd, and / is read-only.
ENV PATH=/opt/bayplan/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
COPY --from=build /opt/bayplan /opt/bayplan
COPY policies /policies
USER 65532:65532
EXPOSE 8443
ENTRYPOINT ["bayplan"]
CMD ["--help"]
