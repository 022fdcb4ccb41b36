import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPO_DIR } from '../../../deploy/local/stack/paths.js';

const MAIN = join(REPO_DIR, 'src/cli/main.ts');

describe('the command line on an old Node', () => {
  it('ends with one sentence instead of a SyntaxError, and requires the Node version of package.json', () => {
    const { engines } = JSON.parse(readFileSync(join(REPO_DIR, 'package.json'), 'utf8')) as {
      engines: { node: string };
    };
    const [major, minor] = engines.node.replace('>=', '').split('.').map(Number) as [number, number];
    const runOn = (version: string) => {
      const versions = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
      const preload = `data:text/javascript,${encodeURIComponent(versions)}`;
      const args = ['--import', 'tsx', '--import', preload, MAIN, '--version'];
      return spawnSync(process.execPath, args, { cwd: REPO_DIR, encoding: 'utf8' });
    };
    for (const version of ['18.20.8', `${major}.${minor - 1}.0`]) {
      const { status, stdout, stderr } = runOn(version);
      expect([status, stdout, stderr]).to.deep.equal([
        1,
        '',
        `seckill needs Node ${major}.${minor} or newer, this is ${version}; install a newer one.\n`,
      ]);
    }
    expect(runOn(`${major}.${minor}.0`)).to.include({ status: 0, stderr: '' });
  });
});
