// Receives the events of a webhook endpoint: docs/events.md. Verifies each signature, ignores repeats, and prints one line
// of JSON per event.
//
//   WEBHOOK_SECRET=whsec_… PORT=8090 node examples/webhook-receiver/main.mjs

import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const { WEBHOOK_SECRET = '', PORT = '8090' } = process.env;
const LIFE_S = 300;
const BODY_BYTES_MAX = 65_536;

/**
 * Ids of events that are done. Keep yours in your database, under a unique key, and write each id in the transaction that
 * handles the event.
 */
const done = new Set();
const DONE_MAX = 100_000;

/**
 * The signature covers the text as it was sent, so it is checked before the JSON is read. For a day after its secret was
 * replaced, Seckill signs with the new and the previous secret: one of the signatures must be that of ours.
 */
function isSigned(header, body) {
  const [, seconds, signatures] = /^t=([0-9]{1,12})((?:,v1=[0-9a-f]{64}){1,8})$/.exec(header ?? '') ?? [];
  if (seconds === undefined || Math.abs(Date.now() / 1000 - Number(seconds)) > LIFE_S) return false;
  const expected = createHmac('sha256', WEBHOOK_SECRET).update(`${seconds}.${body}`).digest();
  return signatures.match(/[0-9a-f]{64}/g).some((hex) => timingSafeEqual(Buffer.from(hex, 'hex'), expected));
}

async function textOf(req) {
  const parts = [];
  let bytes = 0;
  for await (const part of req) {
    bytes += part.length;
    if (bytes > BODY_BYTES_MAX) throw new Error('the body is too long');
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

const server = createServer(async (req, res) => {
  const answer = (status) => res.writeHead(status).end();
  try {
    const body = await textOf(req);
    if (!isSigned(req.headers['webhook-signature'], body)) return answer(401);
    const event = JSON.parse(body);
    if (!done.has(event.id)) {
      console.log(JSON.stringify(event)); // what you do for an event; a type that you do not know is no error
      done.add(event.id);
      if (done.size > DONE_MAX) done.delete(done.values().next().value);
    }
    answer(204); // after the event is handled: without a 2xx, Seckill sends it again
  } catch (error) {
    console.error(error.message);
    answer(400);
  }
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(0));
server.listen(Number(PORT), '127.0.0.1', () => console.error(`listening on port ${server.address().port}`));
