# The image of api, worker, keeper and every command of seckill: docs/containers.md.
#
# The result is an empty image plus Node, the built package and their libraries, as deploy/image/assemble.sh lists them. test/image
# runs this file line by line without a builder, so it has only plain COPY and RUN lines.
FROM node:24.21.0-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json build.mjs ./
COPY src src
COPY web web
COPY deploy/grafana deploy/grafana
RUN npm run build && npm prune --omit=dev --ignore-scripts
COPY lua lua
COPY config config
COPY deploy/prometheus deploy/prometheus
COPY LICENSE CHANGELOG.md ./
COPY deploy/image/assemble.sh deploy/image/assemble.sh
RUN sh deploy/image/assemble.sh /build /image

FROM scratch
COPY --from=build /image /
WORKDIR /app
# A number lets Kubernetes see that the user is not root. /etc/passwd has a name for it.
USER 10001:10001
# A container has its own network. You choose which ports to publish.
ENV NODE_ENV=production \
    NODE_OPTIONS=--max-semi-space-size=64 \
    HTTP_HOST=0.0.0.0 \
    OPERATORS_HOST=0.0.0.0 \
    METRICS_HOST=0.0.0.0
# An api (buyers, operators), a worker, a keeper.
EXPOSE 8080 9103 9101 9102
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["/usr/local/bin/node", "/app/dist/cli/main.js", "health"]
ENTRYPOINT ["/usr/local/bin/node", "/app/dist/cli/main.js"]
CMD ["--help"]
