import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { createTokenSigner } from '../../src/http/token.js';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask } from '../chaos/harness/http.js';
import type { Program } from '../chaos/harness/programs.js';
import { openSale } from '../chaos/harness/sales.js';
import { useSystem } from '../helpers/system.js';

/**
 * Schemathesis sends requests that the OpenAPI document of a listener allows or forbids. An answer that the document
 * lacks, an unannounced 5xx and an accepted forbidden request fail. Schemathesis comes from PyPI, into a folder that
 * git ignores: `npm test -- schemathesis`.
 */
const VERSION = '4.32.5';
const HOME = join(REPO_DIR, '.stack', 'schemathesis');
const BIN = join(HOME, VERSION, 'bin');
const run = promisify(execFile);

async function install(): Promise<void> {
  if (existsSync(join(BIN, 'schemathesis'))) return;
  mkdirSync(HOME, { recursive: true });
  await run('python3', ['-m', 'venv', join(HOME, VERSION)]);
  await run(join(BIN, 'pip'), ['install', '--quiet', `schemathesis==${VERSION}`]);
}

describe('the OpenAPI documents, by schemathesis', () => {
  let api: Program;
  let ids: Record<string, string>;
  const system = useSystem(async ({ programs, stack }) => {
    [api] = await Promise.all([
      programs.start('api', {
        env: { PAYMENT_PROVIDER: 'simulator', PAYMENT_WEBHOOK_SECRET: 'a-webhook-secret-of-more-than-32-bytes' },
      }),
      programs.start('worker'),
    ]);
    const { saleId } = await openSale(stack, { stock: 1000, limitPerBuyer: 1000 });
    const buyers = new Buyers(saleId, stack.env.JWT_SECRET, () => [api.url]);
    expect((await buyers.buy('ann'))?.status).to.equal(202);
    const { json } = await buyers.status('ann', 'k1', 20);
    ids = { saleId, orderId: String(json.orderId), requestId: 'k1', id: 'k1' };
  });
  before(async () => {
    await install();
  });

  for (const [listener, userId, roles] of [
    ['buyers', 'ann', []],
    ['operators', 'boss', ['admin']],
  ] as const) {
    it(`announce every answer to ${listener}`, async () => {
      const dir = join(system.stack.servers.dir, `schemathesis-${listener}`);
      mkdirSync(dir, { recursive: true });
      const document = await ask(`${api.operatorsUrl}/openapi/${listener}.json`);
      writeFileSync(join(dir, 'openapi.json'), JSON.stringify(document.json));
      writeFileSync(join(dir, 'schemathesis.toml'), settings(listener));
      const token = createTokenSigner(system.stack.env.JWT_SECRET)({ userId, roles, ttlMs: 3_600_000 });
      const args = ['--config-file', join(dir, 'schemathesis.toml'), 'run', join(dir, 'openapi.json')];
      const url = listener === 'buyers' ? api.url : api.operatorsUrl;
      const options = { env: { ...process.env, API_TOKEN: token, NO_COLOR: '1' }, cwd: dir, maxBuffer: 64 * 1024 ** 2 };
      const report = await run(join(BIN, 'schemathesis'), [...args, '--url', url], options).then(
        ({ stdout }) => stdout,
        (error: { stdout?: string; message: string }) => expect.fail(error.stdout ?? error.message),
      );
      console.log(report.split('\n').slice(-30).join('\n'));
    });
  }

  /** Uses ids of existing objects. */
  const settings = (listener: keyof typeof EXPLAINED): string => `
seed = 1
continue-on-failure = true
request-timeout = 10.0
workers = 1
[auth.openapi.bearer]
bearer = "\${API_TOKEN}"
[parameters]
"query.wait" = 0
${Object.entries(ids)
  .map(([name, value]) => `"path.${name}" = "${value}"`)
  .join('\n')}
[generation]
max-examples = 20
[phases.stateful]
enabled = false
${EXPLAINED[listener].map(({ operation, settings }) => `[[operations]]\ninclude-operation-id = "${operation}"\n${settings}`).join('\n')}
`;
});

const accepts = (...more: readonly string[]): string =>
  `checks.positive_data_acceptance.expected-statuses = ${JSON.stringify(['2xx', '401', '403', '404', '409', '429', '503', ...more])}`;
const refuses = (...more: readonly string[]): string =>
  `checks.negative_data_rejection.expected-statuses = ${JSON.stringify(['400', '401', '403', '404', '405', '409', '413', '415', '422', '429', '503', ...more])}`;

/** Rules that no schema can express, each with its reason. */
const EXPLAINED = {
  buyers: [
    // a stream has no end, so schemathesis would wait for its time-out in each case; test/unit/http tests it
    { operation: 'followPurchase', settings: 'enabled = false' },
    // 422: the key was already used for another quantity
    { operation: 'buy', settings: accepts('422') },
    // `after` must come from an earlier answer
    { operation: 'listMyOrders', settings: accepts('400') },
  ],
  operators: [
    // each takes as long as requested, which exceeds the limit of a case; test/integration/operations.test.ts runs them
    { operation: 'profileCpu', settings: 'enabled = false' },
    { operation: 'profileHeap', settings: 'enabled = false' },
    // which filters may be combined, and `after`
    { operation: 'findOrders', settings: accepts('400') },
    { operation: 'exportOrders', settings: accepts('400') },
    // answers 200 with the mistakes
    { operation: 'checkRules', settings: refuses('200') },
    // the values that a layer accepts depend on its other fields
    { operation: 'publishRules', settings: accepts('400') },
    { operation: 'setSwitch', settings: accepts('400') },
    // exactly one of `userId` and `tokenId`
    { operation: 'addRevocation', settings: accepts('400') },
    // a sale that closes before it opens
    { operation: 'createSale', settings: accepts('400') },
  ],
} as const;
