import { expect } from 'chai';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mountRefusal, mountVolume, unmountBelow } from '../../chaos/harness/disks.js';

describe('chaos: volumes', () => {
  let dir: string;
  before(function () {
    const refusal = mountRefusal();
    if (refusal === null) return;
    console.log(`    skipped: ${refusal}`);
    this.skip();
  });
  beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'seckill volume-')))); // a blank, which the kernel lists in octal
  afterEach(() => {
    unmountBelow(dir);
    rmSync(dir, { recursive: true, force: true });
  });

  it('unmounts what it mounted, and leaves a volume whose name only starts alike', () => {
    const [one, other] = [join(dir, 'store'), join(dir, 'store-2')];
    for (const store of [one, other]) mountVolume(store, 64 * 1024 ** 2);
    for (const store of [one, other]) writeFileSync(join(store, 'kept'), '');
    unmountBelow(one);
    expect([one, other].map((store) => existsSync(join(store, 'kept')))).to.deep.equal([false, true]);
  });
});
