import express, { type ErrorRequestHandler, type Express, type IRouter, type Request, type Response } from 'express';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { parse as parseQuery } from 'node:querystring';
import { AnswerCounter, problem, type Lifecycle } from './answer.js';
import type { HttpRoute } from './metrics.js';
import { openapiOf } from './openapi.js';
import { createHostCheck } from './own-host.js';
import type { Pages } from './pages.js';
import { Pipeline, unrouted } from './pipeline.js';
import { RequestsPerSecond } from './requests-per-second.js';
import { API_PREFIX, Call, routesOf, type Api, type Listener, type Route } from './route.js';
import { purchase, saleIdOf } from './routes/purchase.js';

/** The parts of a listener that the request listeners below use. */
interface Parts {
  readonly routes: readonly Route[];
  readonly pipeline: Pipeline;
  readonly counterOf: (label: HttpRoute) => AnswerCounter;
}

const openParts = ({ routes, services }: Api, lifecycle: Lifecycle): Parts => ({
  routes,
  pipeline: new Pipeline({ ...services, lifecycle, openapi: openapiDocuments(routes) }),
  counterOf: (label) => new AnswerCounter(services.metrics, label),
});

/**
 * The signature of Express middleware. Only the fields of Node's own request are used. `next` passes other addresses on
 * to the host app.
 */
export type Middleware = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void;

/**
 * Returns the routes of buyers, without probes, for a host app. Passes other addresses on to the app, which may mount it
 * below a path. Answers 503 while it drains.
 */
export function createBuyersMiddleware(api: Api, lifecycle: Lifecycle): Middleware {
  const parts = openParts(api, lifecycle);
  const { pipeline, counterOf } = parts;
  const routes = routesOf(api.routes, 'buyers').filter(({ label }) => label !== 'probe');
  const router = express.Router({ strict: true, caseSensitive: true });
  addRoutes(router, routes, parts);
  const other = counterOf('other');
  addErrorHandler(router, pipeline, other);
  const servePurchase = purchaseOf(pipeline, counterOf(purchase.label));
  return (req, res, next) => {
    if (!req.url?.startsWith(API_PREFIX)) return next();
    if (lifecycle.draining) return pipeline.answer(unrouted(req, res, other), problem('unavailable', STOPPING));
    if (!servePurchase(req, res)) router(req as Request, res as Response, next);
  };
}

/**
 * Finds the route of each request and passes it to the pipeline. Recognises a purchase by its address without Express,
 * because Express costs several times as much as the rest of a refusal. Express finds every other route.
 */
export function createBuyersListener(api: Api, lifecycle: Lifecycle): RequestListener {
  const parts = openParts(api, lifecycle);
  const { pipeline, counterOf } = parts;
  const app = createApp('buyers', parts);
  const servePurchase = purchaseOf(pipeline, counterOf(purchase.label));
  const preflights = counterOf('preflight');
  const { cors, pages } = api.services;
  const servePage = pagesOf(pages.buyers, counterOf('page'), lifecycle, pipeline);
  return (req, res) => {
    if (cors !== null) {
      const answer = cors.preflight(req);
      if (answer !== null) return pipeline.answer(unrouted(req, res, preflights), answer);
      cors.mark(req, res);
    }
    return servePurchase(req, res) || servePage(req, res) || app(req, res);
  };
}

const STOPPING = { detail: 'This server is stopping, and did nothing. Try again with the same key.' };

type Serve = (req: IncomingMessage, res: ServerResponse) => boolean;

/** @returns a function that answers purchases, and returns false for any other address */
const purchaseOf =
  (pipeline: Pipeline, counter: AnswerCounter): Serve =>
  (req, res) => {
    const saleId = saleIdOf(req.url ?? '');
    if (saleId === null) return false;
    const call = new Call(purchase, counter, req, res, { saleId }, null, null);
    if (req.method === 'POST') pipeline.run(call);
    else pipeline.answerUnrouted(call, problem('method_not_allowed', { requestId: call.requestId }, ['Allow', 'POST']));
    return true;
  };

const MISDIRECTED = problem('misdirected');
const TOO_MANY = problem('rate_limited');

/**
 * @param host the name on which it listens; a request for another name gets 421 `misdirected`
 * @param perSecondMax requests of one address per second; further requests get 429 `rate_limited`
 */
export function createOperatorsListener(
  { routes, services }: Api,
  lifecycle: Lifecycle,
  host: string,
  perSecondMax: number,
): RequestListener {
  // This listener itself counts requests, before it knows the route.
  const parts = openParts(
    { routes, services: { ...services, addressLimit: { isOn: false, refuses: () => false } } },
    lifecycle,
  );
  const { pipeline, counterOf } = parts;
  const app = createApp('operators', parts);
  const requests = new RequestsPerSecond(perSecondMax, services.clock);
  const isOurs = createHostCheck(host);
  const counter = counterOf('other');
  const servePage = pagesOf(services.pages.operators, counterOf('page'), lifecycle, pipeline);
  return (req: IncomingMessage, res: ServerResponse) => {
    const refused = !isOurs(req.headers.host) ? MISDIRECTED : requests.take(services.addressOf(req)) ? null : TOO_MANY;
    if (refused === null) return servePage(req, res) || app(req, res);
    pipeline.answer(unrouted(req, res, counter), refused);
  };
}

/** @returns a function that answers requests for pages, and returns false for other requests */
function pagesOf(pages: Pages, counter: AnswerCounter, lifecycle: Lifecycle, pipeline: Pipeline): Serve {
  return (req, res) => {
    const file = pages.find(req);
    if (file === undefined) return false;
    if (lifecycle.draining) res.shouldKeepAlive = false;
    if (pipeline.isOneTooMany(req)) pipeline.answer(unrouted(req, res, counter), problem('rate_limited'));
    else counter.count(String(pages.send(file, req, res)));
    return true;
  };
}

/** Returns the OpenAPI document of a listener as JSON. Builds it at the first request, because that takes a while. */
function openapiDocuments(routes: readonly Route[]): (listener: Listener) => string {
  const made = new Map<Listener, string>();
  return (listener) => {
    const document = made.get(listener) ?? JSON.stringify(openapiOf(routes, listener));
    made.set(listener, document);
    return document;
  };
}

function createApp(listener: Listener, parts: Parts): Express {
  const { routes, pipeline, counterOf } = parts;
  const app = express();
  app.disable('x-powered-by').disable('etag');
  app.enable('strict routing').enable('case sensitive routing');
  addRoutes(app, routesOf(routes, listener), parts);
  const counter = counterOf('other');
  app.use((req, res) => pipeline.answerUnrouted(unrouted(req, res, counter), problem('route_not_found')));
  addErrorHandler(app, pipeline, counter);
  return app;
}

/** Adds all routes except the purchase. */
function addRoutes(to: IRouter, routes: readonly Route[], { pipeline, counterOf }: Parts): void {
  const counters = new Map<HttpRoute, AnswerCounter>();
  for (const [path, served] of byPath(routes)) {
    const pattern = path.replace(/\{(\w+)\}/g, ':$1');
    const label = (served[0] as Route).label;
    const counter = counters.get(label) ?? counterOf(label);
    counters.set(label, counter);
    const at = to.route(pattern); // one pattern for matching and for building, for all methods
    for (const route of served) {
      at[route.method]((req: Request, res: Response) =>
        pipeline.run(new Call<unknown>(route, counter, req, res, req.params, queryOf(req), null)),
      );
    }
    // Express serves HEAD wherever GET is served.
    const methods = served.map(({ method }) => (method === 'get' ? 'GET, HEAD' : method.toUpperCase()));
    const allow = ['Allow', methods.join(', ')];
    at.all((req, res) =>
      pipeline.answerUnrouted(unrouted(req, res, counter), problem('method_not_allowed', {}, allow)),
    );
  }
}

/**
 * Parses the query itself, because a host app may have its own parser. Refuses invalid UTF-8, as Express does in paths.
 */
const queryOf = ({ url }: Request): Record<string, unknown> => {
  const start = url.indexOf('?');
  if (start === -1) return {};
  const query = url.slice(start + 1);
  try {
    decodeURIComponent(query);
  } catch (cause) {
    throw Object.assign(new Error('the query is not well-formed', { cause }), { status: 400 });
  }
  return { ...parseQuery(query) };
};

function addErrorHandler(to: IRouter, pipeline: Pipeline, counter: AnswerCounter): void {
  // Express recognises an error handler by its four parameters. Status 400 means an address with an invalid percent
  // sign.
  const fail: ErrorRequestHandler = (error, req, res, _next) => {
    if ((error as { readonly status?: unknown }).status !== 400)
      return pipeline.fail(unrouted(req, res, counter), error);
    pipeline.answerUnrouted(
      unrouted(req, res, counter),
      problem('bad_request', { detail: 'The address is not well-formed.' }),
    );
  };
  to.use(fail);
}

/** Groups all routes except the purchase by path. */
function byPath(routes: readonly Route[]): Map<string, Route[]> {
  const byPath = new Map<string, Route[]>();
  for (const route of routes) {
    if (route !== purchase) byPath.set(route.path, [...(byPath.get(route.path) ?? []), route]);
  }
  return byPath;
}
