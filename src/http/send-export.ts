import { once } from 'node:events';
import { OperationalError } from '../core/errors.js';
import { nameTrace, problem, startPoll, type Answer } from './answer.js';
import { isStillAllowed } from './event-stream.js';
import type { ExportFormat } from './export-lines.js';
import { NOSNIFF } from './problem.js';
import type { Call, RouteServices } from './route.js';

const TOO_MANY = 'Other exports are running. Try again later, or use another api.';

const TYPES: Readonly<Record<ExportFormat, string>> = {
  csv: 'text/csv; charset=utf-8; header=present',
  jsonl: 'application/x-ndjson',
};

/** The answers of an export: its media types, and notes for its readers. */
export const EXPORT_ANSWER = {
  description:
    'CSV with a byte order mark and a heading, or one JSON object per line. In CSV, an apostrophe precedes each cell' +
    ' that a spreadsheet would take for a formula, or for a number with fewer digits. Control characters are escaped.',
  type: ['text/csv', TYPES.jsonl],
};

/**
 * Sends pages of text as a file, at the speed of its reader. Breaks off when the token of the reader expires or is
 * revoked.
 * @param name the file name without its extension
 * @param pages read one after another; an error after the first page breaks the answer off
 */
export async function sendExport(
  call: Call<unknown, { readonly format: ExportFormat }>,
  name: string,
  pages: AsyncGenerator<string>,
  services: RouteServices,
): Promise<Answer<'overloaded'> | null> {
  const { operatorPlaces, lifecycle, log, onBug } = services;
  const { query, res } = call;
  const leave = operatorPlaces.exports.take();
  if (leave === null) return problem('overloaded', { detail: TOO_MANY });
  const poll = startPoll(res, lifecycle);
  try {
    const first = await pages.next(); // before the head is sent, so that a fault can still be answered
    begin(call, name, query.format);
    if (call.req.method !== 'HEAD')
      await sendAll(first.value ?? '', letIn(pages, isStillAllowed(call, services), poll), call, poll.signal);
    if (poll.signal.aborted) res.destroy(); // not ended properly, so that the client does not take the file for complete
    else res.end();
  } catch (error) {
    if (!res.headersSent) throw error;
    res.destroy();
    if (error instanceof OperationalError) log.warn({ err: error }, 'an export was cut off');
    else onBug(error);
  } finally {
    leave();
  }
  return null;
}

function begin(call: Call, name: string, format: ExportFormat): void {
  call.counter.count('export');
  nameTrace(call);
  const attachment = `attachment; filename="${name}.${format}"`;
  const headers = ['Content-Type', TYPES[format], 'Content-Disposition', attachment, 'Cache-Control', 'no-store'];
  call.res.writeHead(200, [...headers, ...NOSNIFF]);
}

/** Yields the pages while the caller's token remains valid. */
async function* letIn(
  pages: AsyncIterable<string>,
  isAllowed: () => Promise<boolean>,
  poll: AbortController,
): AsyncGenerator<string> {
  for await (const page of pages) {
    if (!(await isAllowed())) return poll.abort();
    yield page;
  }
}

/** Waits while the client is slower than MySQL. The time-out of the connection cuts off a client that reads nothing. */
async function sendAll(
  first: string,
  pages: AsyncIterable<string>,
  { req, res }: Call,
  signal: AbortSignal,
): Promise<void> {
  const { socket } = req;
  const send = async (text: string): Promise<void> => {
    if (text === '') socket.setTimeout(socket.timeout ?? 0); // no byte is sent, but the search is still running
    else if (!res.write(text)) await once(res, 'drain', { signal }).catch(() => undefined);
  };
  await send(first);
  if (signal.aborted) return;
  for await (const text of pages) {
    if (!signal.aborted) await send(text);
    if (signal.aborted) return;
  }
}
