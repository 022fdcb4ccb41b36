import type { ScenarioContext } from '../context.js';
import { outcomeOf } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectOneOf, expectTrue } from '../harness/expect.js';
import { sendRaw } from '../harness/http.js';
import type { Scenario } from '../scenario.js';

// S6: malformed requests.

const ODD_IDS = [
  "'",
  '"',
  '%27%3B--',
  '{7:0}',
  '%7B7:0%7D',
  '%00',
  '%0d%0aX-Odd:%201',
  '*',
  '..%2f..',
  '%F0%9F%92%A5',
  '7%20',
  '-1',
  '1e3',
  '0x7',
  'x'.repeat(10_000),
];
const KEY_IN_ITS_TAG = /^sk:((card:)?\{\d+:\d+\}|\{entry\}:(hot|rules)|\{live\}:(answers|programs?))(:[\w-]+)*$/;

async function keysOf({ stack }: ScenarioContext): Promise<Set<string>> {
  const keys = new Set<string>();
  for (const server of stack.redis.masters()) {
    for await (const found of server.scanStream({ match: 'sk:*', count: 1000 })) {
      for (const name of found as string[]) keys.add(name);
    }
  }
  return keys;
}

const ODD_REQUESTS: Scenario = {
  name: 'S6',
  title:
    'bodies of 10 MB, headers of 64 kB, __proto__, ids with quotes, braces, NUL, CRLF: 4xx, no key outside its hash tag',
  fast: true,
  async run(context) {
    const [{ api }, { saleId }] = await Promise.all([context.healthyPrograms(), context.openSale({ stock: 20 })]);
    const before = await keysOf(context);
    const buyers = context.buyers(saleId, [api]);
    const token = buyers.token('eve', ['admin']);
    const fast = `POST /v1/sales/${saleId}/purchases`;
    const express = 'POST /admin/v1/sales';
    const request = (line: string, headers: string, body: string | Buffer = ''): Buffer =>
      Buffer.concat([
        Buffer.from(
          `${line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n` +
            `${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`,
          'latin1',
        ),
        Buffer.from(body),
      ]);
    const key = 'Idempotency-Key: k1\r\n';
    const large = Buffer.alloc(10 * 1024 * 1024, ' ');
    const proto = '{"__proto__":{"quantity":2},"constructor":{"prototype":{"quantity":2}}}';
    let refused = 0;
    const expectStatus = async (expected: readonly number[], bytes: Buffer, what: string): Promise<void> => {
      const url = what.startsWith(express) ? api.operatorsUrl : api.url;
      expectOneOf(await sendRaw(url, bytes), expected, what);
      refused++;
    };
    for (const line of [fast, express]) {
      await expectStatus([413], request(line, key, large), `${line}: 10 MB`);
      await expectStatus([431], request(line, `${key}X-Long: ${'x'.repeat(65_536)}\r\n`), `${line}: a long header`);
      await expectStatus([400], request(line, key, proto), `${line}: __proto__`);
      await expectStatus([400], request(line, `${key}X-Nul: a\0b\r\n`), `${line}: NUL in a header`);
      await expectStatus([400], request(line, `${key}X-Split: a\rb\r\n`), `${line}: a bare CR`);
    }
    for (const id of ODD_IDS) {
      const name = id.slice(0, 20);
      await expectStatus([400], request(`POST /v1/sales/${id}/purchases`, key), `sale id ${name}, fast lane`);
      await expectStatus([400, 404], request(`GET /v1/sales/${id}`, key), `sale id ${name}, Express`);
      if (/^(-1|1e3|0x7)$/.test(id)) continue; // a valid key
      await expectStatus([400], request(fast, `Idempotency-Key: ${id}\r\n`), `key ${name}, fast lane`);
      await expectStatus([400], request(`GET /v1/sales/${saleId}/purchases/${id}`, ''), `key ${name}, Express`);
    }
    await expectStatus([400], request(`POST /v1/sales/7\0/purchases`, key), 'NUL in the address');
    await context.observed(`${refused} odd requests were refused`, () => refused > 60);
    context.faultEnded();
    expectEqual(outcomeOf(await buyers.buy('ann', { tries: 5 })), 'accepted', 'an honest buyer');
    expectTrue(api.running, 'the api runs');
    await context.expectFigures(saleId, { rows: 1, failedRows: 0 }, 'one order');
    const after = await keysOf(context);
    for (const name of after)
      expectTrue(before.has(name) || KEY_IN_ITS_TAG.test(name), `the key ${name} is in its tag`);
    expectAtLeast([...after].filter((name) => name.startsWith(`sk:{${saleId}:0}:`)).length, 4, 'keys of the sale');
  },
};

export const HOSTILE_REQUESTS_SCENARIOS: readonly Scenario[] = [ODD_REQUESTS];
