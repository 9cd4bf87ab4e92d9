# Container image of the agent for Linux: docker build -f deploy/agent.Dockerfile -t inference-provider .
#
# Serves with the processor. On a Mac, install the agent itself: containers reach neither Metal nor the Secure Enclave.
# Digests are of multi-platform indexes. Renovate's dockerfile manager updates tag and digest of an ARG that FROM uses.
ARG NODE_IMAGE=docker.io/library/node:22.23.1-bookworm@sha256:5647be709086c696ff32edaaf1c70cd26d1da6ab2b39c32f3c7b4c4a31957e37
ARG RUNTIME_IMAGE=gcr.io/distroless/cc-debian12:nonroot@sha256:66aa873a4a14fb164aa01296058efd8253744606d72715e45acface073359faa

# Compiles and bundles the programs, and installs the packages that are not bundled, with the binaries that they contain.
FROM ${NODE_IMAGE} AS build
# The npm of `packageManager` in package.json.
RUN npm install --global --no-audit --no-fund npm@11.19.1
WORKDIR /src
COPY package.json package-lock.json ./
COPY scripts/install-helper.mjs scripts/
COPY apps/coordinator/package.json apps/coordinator/
COPY apps/console/package.json apps/console/
COPY apps/provider/package.json apps/provider/
COPY packages/client/package.json packages/client/
COPY packages/device-simulation/package.json packages/device-simulation/
COPY packages/enclave/package.json packages/enclave/
COPY packages/formats/package.json packages/formats/
COPY packages/json-schema-grammar/package.json packages/json-schema-grammar/
COPY packages/protocol/package.json packages/protocol/
COPY packages/scheduler/package.json packages/scheduler/
COPY packages/verifier/package.json packages/verifier/
COPY test/package.json test/
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npx turbo run build --filter=inference-provider \
    && npx tsx scripts/deploy/stage-image.ts agent /out
# The volume's first content: a folder of the image's user.
RUN mkdir -m 700 /data && chown 65532:65532 /data

FROM ${RUNTIME_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="inference-provider" \
      org.opencontainers.image.description="Agent of an inference network: serves models and signs answers" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# `env` is all that the command's first line needs besides Node. There is no shell.
COPY --from=build /usr/bin/env /usr/bin/env
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build --chown=65532:65532 /data/ /data/
COPY --from=build /out/ /app/
ENV PATH=/app/bin:/usr/local/bin:/usr/bin:/bin \
    NODE_ENV=production \
    INFERENCE_PROVIDER_HOME=/data
WORKDIR /data
# A number, so that Kubernetes can check `runAsNonRoot`.
USER 65532:65532
# Key, models, account link and settings (config.toml).
VOLUME /data
# The agent finishes running requests: give the container a longer grace period than `--drain`.
STOPSIGNAL SIGTERM
# 1 is running without requests, such as an unlinked or paused machine. Only 3, not running, is unhealthy.
HEALTHCHECK --interval=30s --timeout=10s --start-period=120s --retries=3 \
    CMD ["node", "-e", "require('node:child_process').execFile('inference-provider', ['status', '--json'], (error) => process.exit(error?.code === 3 || error?.killed ? 1 : 0))"]
# Use `docker run --init` or `init: true` in compose: the agent starts an engine process, and a killed one must be reaped.
ENTRYPOINT ["node", "/app/bin/inference-provider.js"]
CMD ["serve"]
