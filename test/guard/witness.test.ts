import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { ORDER_TRANSITIONS } from '../../src/core/order.js';
import { ALLOWED_MOVES } from '../../src/operate/witness/judge.js';

describe('guard: the witness', () => {
  it('lists the same moves of an order as the programs', () => {
    expect(ALLOWED_MOVES).to.deep.equal(ORDER_TRANSITIONS);
    expect(ALLOWED_MOVES).not.to.equal(ORDER_TRANSITIONS);
  });

  it('judges without any code of the programs', () => {
    const source = readFileSync(join(REPO_DIR, 'src/operate/witness/judge.ts'), 'utf8');
    expect(source.match(/^import (?!type ).*|\bimport\(.*/gm)).to.equal(null);
  });
});
