import { expect } from 'chai';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { useTempFolder } from './temp-folder.js';

type InstallLock = { release: () => void; refusal?: undefined } | { refusal: string };

/** This is JavaScript because it runs before TypeScript can be imported. */
const BOOTSTRAP = new URL('../../../deploy/local/bootstrap.mjs', import.meta.url).href;

describe('the lock of npm ci', () => {
  const folder = useTempFolder();
  const file = (): string => join(folder(), 'npm-ci.lock');
  let takeInstallLock: (path: string) => InstallLock;
  before(async () => {
    ({ takeInstallLock } = (await import(BOOTSTRAP)) as { takeInstallLock: typeof takeInstallLock });
  });

  it('is taken once, names its owner, and can be given back', () => {
    const first = takeInstallLock(file());
    if (first.refusal !== undefined) throw new Error(first.refusal);
    expect(readFileSync(file(), 'utf8')).to.equal(String(process.pid));
    expect(takeInstallLock(file())).to.have.property(
      'refusal',
      `Process ${process.pid} installs the packages of this checkout; wait until it is done, then run the same command again.`,
    );
    first.release();
    expect(existsSync(file())).to.equal(false);
  });

  it('is free when its owner has ended', () => {
    writeFileSync(file(), String(2 ** 30));
    expect(takeInstallLock(file())).to.have.property('release');
  });

  it('returns a sentence when the checkout cannot be written', () => {
    const { refusal } = takeInstallLock('/proc/none/npm-ci.lock');
    expect(refusal).to.match(/^The packages cannot be installed: .* Make the checkout writable for this user\.$/);
  });
});
