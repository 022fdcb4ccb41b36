import { createServer, type RequestListener, type Server } from 'node:http';
import { Server as NetServer, type AddressInfo, type Socket } from 'node:net';
import { after } from '../core/after.js';
import { Places } from '../core/places.js';
import { AnswerCounter, type Lifecycle } from './answer.js';
import { createBuyersListener, createOperatorsListener } from './app.js';
import { answerClientError, isAnswering, noteExchange } from './client-error.js';
import type { Api } from './route.js';
import type { HttpServices } from './services.js';

export interface HttpServerOptions {
  /** 0 takes a free port. */
  readonly port: number;
  readonly host: string;
  /** Maximum number of open connections. A further connection is closed at once. */
  readonly maxConnections: number;
  /** Maximum number of connections per address, as `limitedAddress` counts it. No limit if 0 or left out. */
  readonly connectionsPerAddressMax?: number;
  /** Time-out for the headers of a request, in ms, from the first byte of the request or from its connection. */
  readonly headersTimeoutMs: number;
  /** Time-out for a whole request, in ms, from its first byte to the end of its body. At least headersTimeoutMs. */
  readonly requestTimeoutMs: number;
  /** How long a connection stays open without a request, in ms. */
  readonly keepAliveTimeoutMs: number;
  /** Closes a connection on which no byte moves for this long, in ms. Defaults to twice the longest poll. */
  readonly stalledTimeoutMs?: number;
}

export interface HttpServer {
  /** @throws the error of the socket, such as EADDRINUSE */
  listen(): Promise<{ readonly port: number }>;
  /**
   * Stops accepting, answers requests with `Connection: close`, and cuts the remaining connections after `ms`, or after half
   * a second if they are idle.
   * Safe to call twice.
   */
  drain(ms: number): Promise<void>;
}

/**
 * Fraction of the connection limit above which the server closes idle connections, because one client could keep the
 * rest open to no purpose.
 */
const CROWDED = 0.9;
/** Minimum interval between two such checks, because each of them looks at all connections. */
const CROWDED_CHECK_MS = 1000;
/** Four times the size of the longest token and key. */
const MAX_HEADER_BYTES = 16 * 1024;
/** Interval between checks for slow requests. Node's default of 30 s would delay every shorter time-out. */
const TIMEOUT_CHECK_MS = 500;
/**
 * Number of connections that the kernel accepts before we do. A rush opens thousands. Linux caps it at somaxconn.
 */
const BACKLOG = 4096;
/**
 * How long a connection without a request stays open while the server drains. A proxy may just have sent a request over
 * it, and cannot repeat a signed request.
 */
const IDLE_OPEN_MS = 500;
/** A client that never reads its answer would hold its connection forever. A poll may be silent for 30 s. */
const STALLED_TIMEOUT_MS = 60_000;

/**
 * Creates the server for buyers, the payment provider and load balancers.
 * @param lifecycle shared with the operators' server
 */
export const createBuyersServer = (api: Api, lifecycle: Lifecycle, options: HttpServerOptions): HttpServer =>
  createHttpServer(createBuyersListener(api, lifecycle), api.services, lifecycle, options);

export interface OperatorsServerOptions extends HttpServerOptions {
  /** Maximum number of requests per address and second. */
  readonly requestsPerSecond: number;
}

/** Creates the server for operators and monitoring. */
export const createOperatorsServer = (api: Api, lifecycle: Lifecycle, options: OperatorsServerOptions): HttpServer =>
  createHttpServer(
    createOperatorsListener(api, lifecycle, options.host, options.requestsPerSecond),
    api.services,
    lifecycle,
    options,
  );

function createHttpServer(
  listener: RequestListener,
  services: HttpServices,
  lifecycle: Lifecycle,
  options: HttpServerOptions,
): HttpServer {
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: options.headersTimeoutMs,
      requestTimeout: options.requestTimeoutMs,
      keepAliveTimeout: options.keepAliveTimeoutMs,
      connectionsCheckingInterval: Math.min(TIMEOUT_CHECK_MS, options.headersTimeoutMs),
    },
    (req, res) => (noteExchange(req, res) ? listener(req, res) : services.metrics.connectionDropped()),
  );
  server.timeout = options.stalledTimeoutMs ?? STALLED_TIMEOUT_MS;
  server.maxConnections = options.maxConnections;
  const sockets = trackSockets(server);
  closeIdleWhenCrowded(server, sockets, services);
  limitConnections(server, options.connectionsPerAddressMax ?? 0, services);
  const other = new AnswerCounter(services.metrics, 'other');
  server.on('drop', () => services.metrics.connectionDropped());
  server.on('clientError', (error, socket) => {
    const code = answerClientError(error, socket);
    if (code !== null) other.count(code);
  });
  return { listen: () => listen(server, options), drain: (ms) => drain(server, sockets, lifecycle, ms) };
}

function trackSockets(server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return sockets;
}

/** Closes idle connections when the server is almost full. Otherwise every new connection would be dropped. */
function closeIdleWhenCrowded(server: Server, sockets: ReadonlySet<Socket>, { clock }: HttpServices): void {
  let checkedMs = -Infinity;
  const closeIdle = (): void => {
    const nowMs = clock.monotonicMs();
    if (sockets.size < CROWDED * server.maxConnections || nowMs - checkedMs < CROWDED_CHECK_MS) return;
    checkedMs = nowMs;
    server.closeIdleConnections();
  };
  server.on('connection', closeIdle).on('drop', closeIdle);
}

/** Limits the connections per address. Otherwise one client could hold all connections until they time out. */
function limitConnections(server: Server, max: number, { limitedAddress, metrics }: HttpServices): void {
  if (max === 0) return;
  const places = new Places({ max: Infinity, perAddressMax: max });
  server.on('connection', (socket: Socket) => {
    const leave = places.take(null, limitedAddress(socket.remoteAddress ?? ''));
    if (leave !== null) return void socket.once('close', leave);
    metrics.connectionDropped();
    socket.destroy();
  });
}

function listen(server: Server, { port, host }: HttpServerOptions): Promise<{ port: number }> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host, backlog: BACKLOG }, () => {
      server.off('error', reject);
      resolve({ port: (server.address() as AddressInfo).port });
    });
  });
}

async function drain(server: Server, sockets: ReadonlySet<Socket>, lifecycle: Lifecycle, ms: number): Promise<void> {
  lifecycle.draining = true;
  for (const poll of lifecycle.polls) poll.abort();
  // An HTTP server's own `close` would cut idle connections at once.
  const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
  const stopIdle = after(Math.min(IDLE_OPEN_MS, ms), () => {
    server.close();
    // Node counts a connection as busy until it has sent its first byte.
    for (const socket of sockets) if (socket.bytesRead === 0 && !isAnswering(socket)) socket.destroy();
  });
  const stop = after(ms, () => server.closeAllConnections());
  await closed;
  stopIdle();
  stop();
}
