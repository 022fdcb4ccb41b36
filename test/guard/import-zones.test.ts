import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { ESLint } from 'eslint';

const REPO = fileURLToPath(new URL('../../', import.meta.url));

/** Without their resolver the import rules find nothing and stay green: each must be seen to bite. */
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

  for (const [path, text] of [
    ['src/core/errors.ts', "import '../redis/keys.js';"],
    ['src/purchase/gate.ts', "import type { BucketKeys } from '../redis/keys.js';\nexport type K = BucketKeys;"],
    ['src/redis/keys.ts', "import '../rocketmq/purchase-channel.js';"],
    ['src/programs/api.ts', "import '../../deploy/local/stack/paths.js';"],
  ] as const) {
    it(`refuses an import against the direction in ${path}, and allows one with it`, async () => {
      expect(await rulesBroken(path, text)).to.include('import-x/no-restricted-paths');
      const allowed = "import '../core/ids.js';";
      expect(await rulesBroken(path, allowed)).not.to.include('import-x/no-restricted-paths');
    });
  }

  it('refuses a cycle, in one folder too', async () => {
    // order-id.ts imports sale.ts; here sale.ts imports it back.
    const text = "import { WORKER_SLOTS } from './order-id.js';\nexport const hash32 = (): number => WORKER_SLOTS;";
    expect(await rulesBroken('src/core/sale.ts', text)).to.include('import-x/no-cycle');
  });

  it('lets only src/core/config and src/cli read the environment', async () => {
    const text = 'export const url = process.env.REDIS_URL;';
    expect(await rulesBroken('src/redis/keys.ts', text)).to.include('no-restricted-properties');
    expect(await rulesBroken('src/core/config/load.ts', text)).not.to.include('no-restricted-properties');
  });
});
