# Container image of the coordinator: docker build -f deploy/coordinator.Dockerfile -t inference-coordinator .
#
# Digests are of multi-platform indexes. Renovate's dockerfile manager updates tag and digest of an ARG that FROM uses.
# Node 22, because better-sqlite3 12.11 ends Node 24.21 with a failed assertion when statements are collected (decision 0055).
# Checked without a registry by `npm run check-images -- --bases debian` (docs/deployment.md).
ARG NODE_IMAGE=docker.io/library/node:22.23.1-bookworm@sha256:5647be709086c696ff32edaaf1c70cd26d1da6ab2b39c32f3c7b4c4a31957e37
ARG POSTGRES_IMAGE=docker.io/library/postgres:17.10-bookworm@sha256:4f736ae292687621d4dbe0d499ffd024a36bd2ee7d8ca6f2ccd4c800f047b394
ARG RUNTIME_IMAGE=gcr.io/distroless/cc-debian12:nonroot@sha256:66aa873a4a14fb164aa01296058efd8253744606d72715e45acface073359faa

# Compiles and bundles the programs and the console.
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
RUN npx turbo run build --filter=@inference/coordinator --filter=@inference/console \
    && npx tsx scripts/deploy/stage-image.ts coordinator /out

# Installs the packages that are not bundled. better-sqlite3 is compiled here, because its prebuilt binary would be an unverified download.
# npm 12 runs no install scripts, and reads no shrinkwrap. npm's own settings for node-gyp will become errors, so node-gyp gets its option directly.
FROM ${NODE_IMAGE} AS packages
RUN npm install --global --no-audit --no-fund npm@11.19.1
WORKDIR /app
COPY --from=build /out/package.json ./
COPY --from=build /out/npm-shrinkwrap.json ./package-lock.json
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
    && npm --prefix node_modules/better-sqlite3 run build-release -- --nodedir=/usr/local \
    && rm -rf node_modules/better-sqlite3/deps node_modules/better-sqlite3/src \
    && find node_modules/better-sqlite3/build -type f ! -name better_sqlite3.node -delete
# The volume's first content: a folder of the image's user.
RUN mkdir -m 700 /data && chown 65532:65532 /data

# PostgreSQL's programs for `backup` and `restore`, of the server's major version, with the libraries that the last stage lacks.
FROM ${POSTGRES_IMAGE} AS postgres
RUN libraries="/tools/usr/lib/$(uname -m)-linux-gnu" \
    && mkdir -p /tools/usr/local/bin "$libraries" \
    && for program in pg_dump pg_restore psql; do cp /usr/lib/postgresql/*/bin/$program /tools/usr/local/bin/; done \
    && ldd /tools/usr/local/bin/* | awk '$2 == "=>" { print $3 }' | sort -u \
       | grep -v -E '/(libc|libm|libcrypto|libssl|libgcc_s|libstdc\+\+)\.so' | xargs -I {} cp -L {} "$libraries"

FROM ${RUNTIME_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="inference-coordinator" \
      org.opencontainers.image.description="HTTP gateway of an inference network: routes, seals, relays, verifies and publishes" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# `env` is all that the command's first line needs besides Node. There is no shell.
COPY --from=packages /usr/bin/env /usr/bin/env
COPY --from=packages /usr/local/bin/node /usr/local/bin/node
COPY --from=postgres /tools/ /
COPY --from=packages /app/node_modules/ /app/node_modules/
COPY --from=packages --chown=65532:65532 /data/ /data/
COPY --from=build /out/ /app/
ENV PATH=/app/bin:/usr/local/bin:/usr/bin:/bin \
    NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=8080 \
    DATA_DIR=/data \
    CONSOLE_DIR=/app/console
WORKDIR /data
# A number, so that Kubernetes can check `runAsNonRoot`.
USER 65532:65532
VOLUME /data
EXPOSE 8080
# The coordinator drains: give the container a longer grace period than DRAIN_SECONDS.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
    CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Node runs as process 1: it handles the stop signal, and the coordinator starts no other processes, so that no init is needed.
ENTRYPOINT ["node", "/app/bin/inference-coordinator.js"]
CMD ["serve"]
