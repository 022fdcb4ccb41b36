import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { buildIfOlder, runCommand } from '../chaos/harness/commands.js';

/** Makes every folder unreadable, which no command expects. */
const BROKEN = `data:text/javascript,
  import fs from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  fs.readdirSync = () => { throw new Error('broken on purpose'); };
  syncBuiltinESMExports();`;

describe('the built programs', () => {
  before(async () => buildIfOlder());

  it('name the file and line of the sources in a stack trace', async () => {
    const env = { PATH: process.env.PATH, NODE_OPTIONS: `--import "${BROKEN.replaceAll('\n', '')}"` };
    const { code, stderr } = await runCommand(['lua', 'deduct'], env);
    expect(code, stderr).to.equal(1);
    const [, file = '', line] = /at readScripts \((\S+\/src\/redis\/scripts\.ts):(\d+):\d+\)/.exec(stderr) ?? [];
    expect(file, stderr).to.equal(join(REPO_DIR, 'src/redis/scripts.ts'));
    expect(readFileSync(file, 'utf8').split('\n')[Number(line) - 1]).to.include('readdirSync(folder)');
  });
});
