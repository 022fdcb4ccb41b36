# The image of api, worker, keeper and every command of seckill: docs/containers.md.
#
# What runs is an empty image with Node, the built package, and the libraries that the two load: deploy/image/assemble.sh is the
# list. test/image runs the lines of this file without a builder of images, so only plain COPY and RUN stand in it.
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
# A name for the user is in /etc/passwd; a number lets Kubernetes see that it is not root.
USER 10001:10001
# A container has a network of its own: what is let in from outside is decided there.
ENV NODE_ENV=production \
    NODE_OPTIONS=--max-semi-space-size=64 \
    HTTP_HOST=0.0.0.0 \
    OPERATORS_HOST=0.0.0.0 \
    METRICS_HOST=0.0.0.0
# Buyers and operators of an api; a worker; a keeper.
EXPOSE 8080 9103 9101 9102
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["/usr/local/bin/node", "/app/dist/cli/main.js", "health"]
ENTRYPOINT ["/usr/local/bin/node", "/app/dist/cli/main.js"]
CMD ["--help"]
