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
import { API_PREFIX, Call, type Listener, type Route } from './route.js';
import { routesOf } from './routes/index.js';
import { purchase, saleIdOf } from './routes/purchase.js';
import type { HttpServices } from './services.js';

/** What a listener has for the request listeners below. */
interface Parts {
  readonly pipeline: Pipeline;
  readonly counterOf: (label: HttpRoute) => AnswerCounter;
}

const openParts = (services: HttpServices, lifecycle: Lifecycle): Parts => ({
  pipeline: new Pipeline({ ...services, lifecycle, openapi: documentOf }),
  counterOf: (label) => new AnswerCounter(services.metrics, label),
});

/** What Express calls: of the request only what Node's own has is used. `next` is for whoever else serves the address. */
export type Middleware = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void;

/**
 * The routes of buyers, without probes, for an app of somebody else. Addresses that are not ours go on to it. The app may have them
 * below a path of its own. While it drains, what comes is answered 503.
 */
export function createBuyersMiddleware(services: HttpServices, lifecycle: Lifecycle): Middleware {
  const parts = openParts(services, lifecycle);
  const { pipeline, counterOf } = parts;
  const routes = routesOf('buyers').filter(({ label }) => label !== 'probe');
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
 * Finds the route of each request and hands it to the pipeline. The purchase is recognised by its address alone, before
 * Express, because Express costs several times what the rest of a refusal costs; every other address is found by
 * Express.
 */
export function createBuyersListener(services: HttpServices, lifecycle: Lifecycle): RequestListener {
  const parts = openParts(services, lifecycle);
  const { pipeline, counterOf } = parts;
  const app = createApp('buyers', parts);
  const servePurchase = purchaseOf(pipeline, counterOf(purchase.label));
  const preflights = counterOf('preflight');
  const { cors } = services;
  const servePage = pagesOf(services.pages.buyers, counterOf('page'), lifecycle, pipeline);
  return (req, res) => {
    if (cors !== null) {
      const answer = cors.preflight(req);
      if (answer !== null) return pipeline.answer(unrouted(req, res, preflights), answer);
      cors.mark(req, res);
    }
    return servePurchase(req, res) || servePage(req, res) || app(req, res);
  };
}

const STOPPING = { detail: 'This server is stopping; nothing was started. Ask again with the same key.' };

type Serve = (req: IncomingMessage, res: ServerResponse) => boolean;

/** @returns what answers a purchase; false: the address is another one */
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
 * @param host where it listens; a request for another name gets 421 `misdirected`
 * @param perSecondMax requests of one address in a second; one more gets 429 `rate_limited`
 */
export function createOperatorsListener(
  services: HttpServices,
  lifecycle: Lifecycle,
  host: string,
  perSecondMax: number,
): RequestListener {
  // Counted here, before a route is known.
  const parts = openParts({ ...services, addressLimit: { isOn: false, refuses: () => false } }, lifecycle);
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

/** @returns what answers a request for a page; false: it is for none */
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

const documents = new Map<Listener, string>();

/** As JSON; made when it is first asked for, since that takes a while. */
function documentOf(listener: Listener): string {
  const made = documents.get(listener) ?? JSON.stringify(openapiOf(listener));
  documents.set(listener, made);
  return made;
}

function createApp(listener: Listener, parts: Parts): Express {
  const { pipeline, counterOf } = parts;
  const app = express();
  app.disable('x-powered-by').disable('etag');
  app.enable('strict routing').enable('case sensitive routing');
  addRoutes(app, routesOf(listener), parts);
  const counter = counterOf('other');
  app.use((req, res) => pipeline.answerUnrouted(unrouted(req, res, counter), problem('route_not_found')));
  addErrorHandler(app, pipeline, counter);
  return app;
}

/** All but the purchase. */
function addRoutes(to: IRouter, routes: readonly Route[], { pipeline, counterOf }: Parts): void {
  const counters = new Map<HttpRoute, AnswerCounter>();
  for (const [path, served] of byPath(routes)) {
    const pattern = path.replace(/\{(\w+)\}/g, ':$1');
    const label = (served[0] as Route).label;
    const counter = counters.get(label) ?? counterOf(label);
    counters.set(label, counter);
    for (const route of served) {
      to[route.method](pattern, (req: Request, res: Response) =>
        pipeline.run(new Call<unknown>(route, counter, req, res, req.params, queryOf(req), null)),
      );
    }
    // Express serves HEAD wherever GET is served.
    const methods = served.map(({ method }) => (method === 'get' ? 'GET, HEAD' : method.toUpperCase()));
    const allow = ['Allow', methods.join(', ')];
    to.all(pattern, (req, res) =>
      pipeline.answerUnrouted(unrouted(req, res, counter), problem('method_not_allowed', {}, allow)),
    );
  }
}

/** For itself: an app around us may read queries otherwise. Refuses what is not UTF-8, as Express does for paths. */
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
  // Express knows an error handler by its four parameters. It could not decode an address with a broken percent sign.
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

/** All but the purchase. */
function byPath(routes: readonly Route[]): Map<string, Route[]> {
  const byPath = new Map<string, Route[]>();
  for (const route of routes) {
    if (route !== purchase) byPath.set(route.path, [...(byPath.get(route.path) ?? []), route]);
  }
  return byPath;
}
