import { once } from 'node:events';
import { z } from 'zod';
import { OperationalError } from '../../core/errors.js';
import { isServed, ORDER_FILTER_NEEDS } from '../../core/ports/order-search.js';
import { Places } from '../../purchase/places.js';
import { problem, startPoll } from '../answer.js';
import { EXPORT_FORMATS, EXPORT_MAX, orderPages, type ExportFormat } from '../order-lines.js';
import { NOSNIFF } from '../problem.js';
import { defineRoute, type Call } from '../route.js';
import { queryWhole, queryWord } from '../schemas.js';
import { filterOf, orderFilter } from './find-orders.js';

/** Exports of one api at the same time: each keeps a connection to MySQL busy. */
const EXPORTS_MAX = 2;
const places = new Places({ max: EXPORTS_MAX, perBuyerMax: EXPORTS_MAX });
const TOO_MANY = 'Other exports are under way. Try again later, or use another api.';

const TYPES: Readonly<Record<ExportFormat, string>> = {
  csv: 'text/csv; charset=utf-8; header=present',
  jsonl: 'application/x-ndjson',
};

/** The same as `seckill orders export`. */
export const exportOrders = defineRoute({
  method: 'get',
  path: '/admin/v1/orders/export',
  label: 'admin',
  operationId: 'exportOrders',
  summary: 'Orders by user, sale or time, and by state, as one text. An answer that breaks off is not whole.',
  access: 'viewer',
  endpoint: null,
  query: z.strictObject({
    ...orderFilter,
    limit: queryWhole(1, EXPORT_MAX).default(EXPORT_MAX),
    format: queryWord(EXPORT_FORMATS).default('csv'),
  }),
  answers: {
    200: {
      description:
        'CSV with a heading, or one JSON object per line. In CSV a cell that a spreadsheet would take for a formula has an' +
        ' apostrophe in front.',
      type: ['text/csv', TYPES.jsonl],
    },
  },
  problems: ['overloaded'],
  async handle(call, services) {
    const { query, userId, res } = call;
    const filter = filterOf(query);
    if (!isServed(filter)) return problem('bad_request', { detail: ORDER_FILTER_NEEDS });
    const leave = places.take(userId);
    if (leave === null) return problem('overloaded', { detail: TOO_MANY });
    const { lifecycle, orderSearch, log, onBug } = services;
    const poll = startPoll(res, lifecycle);
    try {
      const pages = orderPages(orderSearch, filter, query);
      const first = await pages.next(); // before the head: a fault is still an answer
      begin(call, query.format);
      if (call.req.method !== 'HEAD') await sendAll(first.value ?? '', pages, call, poll.signal);
      if (poll.signal.aborted) res.destroy(); // not ended: the client must not take it for the whole
      else res.end();
    } catch (error) {
      if (!res.headersSent) throw error;
      res.destroy();
      if (error instanceof OperationalError) log.warn({ err: error }, 'an export of orders was broken off');
      else onBug(error);
    } finally {
      lifecycle.polls.delete(poll);
      leave();
    }
    return null;
  },
});

function begin({ res, counter }: Call, format: ExportFormat): void {
  counter.count('export');
  const attachment = `attachment; filename="orders.${format}"`;
  const headers = ['Content-Type', TYPES[format], 'Content-Disposition', attachment, 'Cache-Control', 'no-store'];
  res.writeHead(200, [...headers, ...NOSNIFF]);
}

/** Waits while the client is slower than MySQL. A client that reads nothing is cut off by the time-out of its connection. */
async function sendAll(
  first: string,
  pages: AsyncIterable<string>,
  { req, res }: Call,
  signal: AbortSignal,
): Promise<void> {
  const { socket } = req;
  const send = async (text: string): Promise<void> => {
    if (text === '') socket.setTimeout(socket.timeout ?? 0); // no byte moves, but the search goes on
    else if (!res.write(text)) await once(res, 'drain', { signal }).catch(() => undefined);
  };
  await send(first);
  if (signal.aborted) return;
  for await (const text of pages) {
    if (!signal.aborted) await send(text);
    if (signal.aborted) return;
  }
}
