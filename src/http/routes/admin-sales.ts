import { fieldSentences } from '../../core/field-errors.js';
import { isSaleId } from '../../core/ids.js';
import { parseJson } from '../../core/parse-json.js';
import type { Sale } from '../../core/sale.js';
import { readNewSale } from '../../sales/new-sale.js';
import type { SaleAdminAnswer } from '../../sales/sale-admin.js';
import type { Principal } from '../auth.js';
import { collectBody } from '../body.js';
import { promisesJson } from '../purchase-request.js';
import type { HttpServices } from '../services.js';
import { principalOf, type Exchange, type Handler, type Router } from './router.js';
import { isoTime } from './sales.js';

const ADMIN = 'admin';
/** The newest sales; older ones are asked for by id. */
const LIST_MAX = 200;

/** The desk of the seller: create a sale and move it through its life. */
export function mountAdminSales(router: Router, services: HttpServices): void {
  const { sales } = services;
  const admin = (handler: AdminHandler): Handler => asAdmin(services, handler);

  router.mount('admin', '/admin/v1/sales', {
    post: admin((exchange, { userId: actor }) => createSale(exchange, actor, services)),
    get: admin(async ({ req, res, replies }) => {
      const newest = await sales.list(LIST_MAX);
      replies.json(req, res, 200, 'found', { sales: newest.map(saleBody) });
    }),
  });

  router.mount('admin', '/admin/v1/sales/{saleId}', {
    get: admin(async (exchange) => {
      const { req, res, replies } = exchange;
      const saleId = saleIdIn(exchange);
      if (saleId === null) return;
      const sale = await sales.show(saleId);
      if (sale === null) return replies.problem(req, res, 'not_found');
      replies.json(req, res, 200, 'found', saleBody(sale));
    }),
  });

  const moves: Record<string, (saleId: string, actor: string) => Promise<SaleAdminAnswer>> = {
    warm: (...asked) => sales.warm(...asked),
    open: (...asked) => sales.open(...asked),
    pause: (...asked) => sales.pause(...asked),
    resume: (...asked) => sales.open(...asked), // a paused sale opens the way a warm one does
    close: (...asked) => sales.close(...asked),
  };
  for (const [verb, move] of Object.entries(moves)) {
    router.mount('admin', `/admin/v1/sales/{saleId}/${verb}`, {
      post: admin(async (exchange, { userId: actor }) => {
        const saleId = saleIdIn(exchange);
        if (saleId !== null) answerMove(exchange, verb, await move(saleId, actor));
      }),
    });
  }
}

export type AdminHandler = (exchange: Exchange, who: Principal) => void | Promise<void>;

/** Lets only admins through, and says who it is. */
export function asAdmin(services: HttpServices, handler: AdminHandler): Handler {
  return (exchange) => {
    const who = principalOf(exchange, services);
    if (who === null) return;
    if (!who.roles.includes(ADMIN)) return exchange.replies.problem(exchange.req, exchange.res, 'role_needed');
    return handler(exchange, who);
  };
}

async function createSale(
  { req, res, replies }: Exchange,
  actor: string,
  { sales, clock }: HttpServices,
): Promise<void> {
  if (!promisesJson(req.headers)) return replies.problem(req, res, 'unsupported_media_type');
  const body = await new Promise<string | null>((resolve) => collectBody(req, resolve));
  if (body === null) return replies.problem(req, res, 'payload_too_large');
  const json = parseJson(body, 'The body');
  if ('error' in json) return replies.problem(req, res, 'bad_request', { detail: json.error });
  const read = readNewSale(json.value, clock.nowMs());
  if ('errors' in read) {
    return replies.problem(req, res, 'bad_request', { detail: fieldSentences(read.errors), errors: read.errors });
  }
  const sale = await sales.create(read.sale, actor);
  replies.json(req, res, 201, 'created', saleBody(sale), ['Location', `/admin/v1/sales/${sale.saleId}`]);
}

function saleIdIn({ req, res, replies, param }: Exchange): string | null {
  const saleId = param('saleId');
  if (isSaleId(saleId)) return saleId;
  replies.problem(req, res, 'bad_request', { detail: 'The sale id must be a whole number.' });
  return null;
}

function answerMove({ req, res, replies }: Exchange, verb: string, answer: SaleAdminAnswer): void {
  switch (answer.outcome) {
    case 'done':
      return replies.json(req, res, 200, answer.outcome, saleBody(answer.sale));
    case 'wrong_state':
      return replies.problem(req, res, answer.outcome, {
        detail: `Cannot ${verb} a sale that is ${answer.sale.state}.`,
      });
    case 'not_found':
    case 'not_warmed':
    case 'repairing':
      return replies.problem(req, res, answer.outcome);
  }
}

function saleBody({ opensAtMs, closesAtMs, ...sale }: Sale): object {
  return { ...sale, opensAt: isoTime(opensAtMs), closesAt: isoTime(closesAtMs) };
}
