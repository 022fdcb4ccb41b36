import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { ESLint } from 'eslint';

const REPO = fileURLToPath(new URL('../../', import.meta.url));

/** A file as it might be written one day, and an import that its folder may not have. */
const FORBIDDEN = [
  ['src/core/errors.ts', "import '../ports/clock.js';"],
  ['src/core/errors.ts', "import { bucketKeys } from '../redis/keys.js';\nexport const k = bucketKeys;"],
  ['src/core/sale.ts', "import type { BucketKeys } from '../redis/keys.js';\nexport type K = BucketKeys;"],
  ['src/core/ports/clock.ts', "import '../purchase/batcher.js';"],
  ['src/core/ports/clock.ts', "import type { RedisOptions } from '../redis/connection.js';\nexport type R = RedisOptions;"],
  ['src/purchase/gate.ts', "import '../redis/keys.js';"],
  ['src/purchase/gate.ts', "import '../rocketmq/purchase-channel.js';"],
  ['src/purchase/gate.ts', "import '../config/load.js';"],
  ['src/core/job.ts', "import '../redis/keys.js';"],
  ['src/sales/sale-desk.ts', "import '../purchase/gate.js';"],
  ['src/admission/entry.ts', "import '../redis/keys.js';"],
  ['src/admission/entry.ts', "import '../purchase/gate.js';"],
  ['src/purchase/gate.ts', "import '../entry/entry.js';"],
  ['src/redis/keys.ts', "import '../rocketmq/purchase-channel.js';"],
  ['src/redis/keys.ts', "import '../purchase/gate.js';"],
  ['src/redis/keys.ts', "import '../config/load.js';"],
  ['src/rocketmq/purchase-channel.ts', "import '../redis/keys.js';"],
  ['src/http/auth.ts', "import '../redis/keys.js';"],
  ['src/http/auth.ts', "import '../app/api.js';"],
  ['src/core/config/load.ts', "import '../redis/keys.js';"],
  ['test/chaos/arena.ts', "import '../http/auth.js';"],
  ['test/chaos/arena.ts', "import '../app/api.js';"],
  ['src/programs/api.ts', "import '../chaos/arena.js';"],
] as const;

const ALLOWED = [
  ['src/core/ports/clock.ts', "import '../domain/errors.js';"],
  [
    'src/purchase/gate.ts',
    "import '../domain/errors.js';\nimport '../ports/clock.js';\nimport '../sale/sale-cards.js';",
  ],
  ['src/redis/keys.ts', "import '../domain/errors.js';\nimport '../ports/stock-ledger.js';"],
  ['test/chaos/arena.ts', "import '../http/token.js';\nimport '../app/system-clock.js';"],
  ['src/programs/api.ts', "import '../redis/keys.js';\nimport '../purchase/gate.js';\nimport '../http/auth.js';"],
] as const;

describe('guard: lint holds the direction of imports', function () {
  this.timeout(60_000);
  let eslint: ESLint;
  before(() => {
    eslint = new ESLint({ cwd: REPO });
  });

  /** The rules that a text breaks at this place; the file on disk is not touched. */
  const rulesBroken = async (path: string, text: string): Promise<(string | null)[]> => {
    expect(existsSync(join(REPO, path)), `${path} exists, so that the type-aware rules know it`).to.equal(true);
    const [result] = await eslint.lintText(`${text}\n`, { filePath: join(REPO, path) });
    const fatal = result?.messages.find((message) => message.fatal);
    if (fatal) throw new Error(`${path}: ${fatal.message}`);
    return (result?.messages ?? []).filter(({ severity }) => severity === 2).map(({ ruleId }) => ruleId);
  };

  for (const [path, text] of FORBIDDEN) {
    it(`${path} may not say ${text.split('\n')[0]}`, async () => {
      for (const [, target] of text.matchAll(/from '(.*)\.js'|import '(.*)\.js'/g)) {
        if (target) expect(existsSync(join(REPO, path, '..', `${target}.ts`)), 'the target exists').to.equal(true);
      }
      expect(await rulesBroken(path, text)).to.include('import-x/no-restricted-paths');
    });
  }

  for (const [path, text] of ALLOWED) {
    it(`${path} may say ${text.split('\n').join(' ')}`, async () => {
      expect(await rulesBroken(path, text)).not.to.include('import-x/no-restricted-paths');
    });
  }

  it('a cycle is an error, in one folder too', async () => {
    // order-id.ts imports sale.ts; here sale.ts imports it back.
    const text = "import { WORKER_SLOTS } from './order-id.js';\nexport const hash32 = (): number => WORKER_SLOTS;";
    expect(await rulesBroken('src/core/sale.ts', text)).to.include('import-x/no-cycle');
  });

  it('only src/config reads the environment', async () => {
    const text = 'export const url = process.env.REDIS_URL;';
    expect(await rulesBroken('src/redis/keys.ts', text)).to.include('no-restricted-properties');
    expect(await rulesBroken('src/core/config/load.ts', text)).not.to.include('no-restricted-properties');
  });

  it('a dropped promise and a switch with a hole are errors', async () => {
    const dropped = 'export async function f(): Promise<void> {\n  f();\n}';
    expect(await rulesBroken('src/core/sale.ts', dropped)).to.include('@typescript-eslint/no-floating-promises');
    const hole = "export function g(x: 'a' | 'b'): void {\n  switch (x) {\n    case 'a':\n      break;\n  }\n}";
    expect(await rulesBroken('src/core/sale.ts', hole)).to.include('@typescript-eslint/switch-exhaustiveness-check');
  });
});
