import type { Express, Request, Response } from 'express';
import { isId } from '../../core/ids.js';
import type { Endpoint, Refused } from '../../admission/layer.js';
import type { HttpRoute } from '../../core/ports/http-metrics.js';
import type { Principal } from '../auth.js';
import { admissionParts } from '../admission-answers.js';
import { Replies, type Lifecycle } from '../respond.js';
import type { HttpServices } from '../services.js';
import { unauthorizedParts } from '../unauthorized.js';
import { callerOf } from '../caller.js';
import { answerError } from './errors.js';

export type Method = 'get' | 'post' | 'put';

/** One request with the means to answer it. */
export interface Exchange {
  readonly req: Request;
  readonly res: Response;
  readonly replies: Replies;
  /** The part of the path that `{name}` stands for. */
  param(name: string): string;
}
export type Handler = (exchange: Exchange) => void | Promise<void>;

/** Mounts handlers on Express, one call per address, so that each address knows its methods, its counter and its errors. */
export class Router {
  readonly #app: Express;
  readonly #services: HttpServices;
  readonly #lifecycle: Lifecycle;

  constructor(app: Express, services: HttpServices, lifecycle: Lifecycle) {
    this.#app = app;
    this.#services = services;
    this.#lifecycle = lifecycle;
  }

  /** @param path parameters as `{name}`, the way OpenAPI writes them */
  mount(route: HttpRoute, path: string, handlers: Partial<Record<Method, Handler>>): void {
    const replies = new Replies(route, { metrics: this.#services.metrics, lifecycle: this.#lifecycle });
    const pattern = path.replace(/\{(\w+)\}/g, ':$1');
    const methods = Object.keys(handlers) as Method[];
    for (const method of methods) {
      this.#app[method](pattern, this.#guarded(replies, handlers[method] as Handler));
    }
    // Express serves HEAD wherever GET is served.
    const allow = methods.flatMap((method) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()])).join(', ');
    this.#app.all(pattern, (req, res) => replies.problem(req, res, 'method_not_allowed', {}, ['Allow', allow]));
  }

  #guarded(replies: Replies, handler: Handler): (req: Request, res: Response) => Promise<void> {
    return async (req, res) => {
      try {
        await handler({ req, res, replies, param: (name) => String(req.params[name]) });
      } catch (error) {
        answerError(error, { req, res, replies }, this.#services);
      }
    };
  }
}

/** Who asks; answers 401 itself and returns null when nobody valid does. */
export function principalOf({ req, res, replies }: Exchange, { auth }: HttpServices): Principal | null {
  const who = auth.authenticate(req.headers.authorization);
  if (typeof who !== 'string') return who;
  replies.problem(req, res, 'unauthorized', ...unauthorizedParts(who, keyOf(req)));
  return null;
}

/** Whether the entry lets anybody ask for this; answers itself when not. */
export async function isLetIn(exchange: Exchange, endpoint: Endpoint, services: HttpServices): Promise<boolean> {
  const { entry } = services;
  if (!entry.isOn) return true;
  const refused = await entry.anonymous(callerOf(exchange.req, endpoint, services));
  if (refused !== null) refuse(exchange, refused);
  return refused === null;
}

/** The buyer who asks for this, if the entry lets him; answers itself and returns null when not. */
export async function buyerOf(
  exchange: Exchange,
  endpoint: Endpoint,
  services: HttpServices,
): Promise<Principal | null> {
  if (!(await isLetIn(exchange, endpoint, services))) return null;
  const who = principalOf(exchange, services);
  const { entry } = services;
  if (who === null || !entry.isOn) return who;
  const refused = await entry.buyer(callerOf(exchange.req, endpoint, services), who.userId);
  if (refused === null) return who;
  refuse(exchange, refused);
  return null;
}

const refuse = ({ req, res, replies }: Exchange, refused: Refused): void =>
  replies.problem(req, res, refused.word, admissionParts(refused, keyOf(req)), refused.headers);

/** The Idempotency-Key of a request, for its answer; null where there is none. */
export function keyOf(req: Request): string | null {
  const key = req.headers['idempotency-key'];
  return isId(key) ? key : null;
}
