import { expect } from 'chai';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  fillVolume,
  freeVolume,
  mountRefusal,
  mountVolume,
  unmountBelow,
  usedPart,
} from '../../chaos/harness/disks.js';

describe('chaos: a small volume', () => {
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

  it('hides what was there, fills and is freed; once it is gone the folder is as before', () => {
    const store = join(dir, 'store');
    mountVolume(store, 64 * 1024 ** 2);
    unmountBelow(store);
    writeFileSync(join(store, 'kept'), '');
    mountVolume(store, 64 * 1024 ** 2);
    expect(existsSync(join(store, 'kept'))).to.equal(false);
    fillVolume(store, 0.9);
    expect(usedPart(store)).to.be.within(0.9, 0.999);
    freeVolume(store);
    expect(usedPart(store)).to.be.below(0.1);
    unmountBelow(dir);
    expect(existsSync(join(store, 'kept'))).to.equal(true);
  });

  it('leaves a volume whose name only begins alike', () => {
    const [one, other] = [join(dir, 'store'), join(dir, 'store-2')];
    for (const store of [one, other]) mountVolume(store, 64 * 1024 ** 2);
    for (const store of [one, other]) writeFileSync(join(store, 'kept'), '');
    unmountBelow(one);
    expect([one, other].map((store) => existsSync(join(store, 'kept')))).to.deep.equal([false, true]);
  });
});
