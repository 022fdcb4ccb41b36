import type { IncomingMessage, ServerResponse } from 'node:http';
import { pause } from '../core/after.js';
import { newLifecycle, type Lifecycle } from '../http/answer.js';
import { createBuyersMiddleware, type Middleware } from '../http/app.js';
import { API_PREFIX, type Api } from '../http/route.js';

export interface Router {
  readonly middleware: Middleware;
  /** Waits at most `ms` for requests under way. Answers new requests with 503 `unavailable`. */
  drain(ms: number): Promise<void>;
}

export function createRouter(api: Api): Router {
  const lifecycle: Lifecycle = newLifecycle();
  const serve = createBuyersMiddleware(api, lifecycle);
  let underWay = 0;
  let onIdle = (): void => undefined;
  const left = (): void => {
    underWay--;
    if (underWay === 0) onIdle();
  };
  return {
    middleware(req: IncomingMessage, res: ServerResponse, next) {
      if (!req.url?.startsWith(API_PREFIX)) return next();
      underWay++;
      res.once('close', left);
      serve(req, res, next);
    },
    async drain(ms) {
      lifecycle.draining = true;
      for (const poll of lifecycle.polls) poll.abort();
      if (underWay === 0) return;
      const idle = new AbortController();
      onIdle = () => idle.abort();
      await pause(ms, idle.signal);
    },
  };
}
