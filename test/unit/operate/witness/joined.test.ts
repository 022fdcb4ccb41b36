import { expect } from 'chai';
import type { Found } from '../../../../src/mysql/witness-store.js';
import { joined } from '../../../../src/operate/witness/jobs.js';

describe('findings of the witness', () => {
  const finding = (kind: Found['kind'], detail: string, place: string): Found => {
    return { kind, detail, place, subject: 'binlog', orderId: null, saleId: null, committedAtMs: 1 };
  };

  it('are one finding when transactions cannot be read for the same reason', () => {
    const changed = [finding('row_changed', 'a', '1'), finding('row_changed', 'a', '2')];
    const places = ['3', '4', '5'].map((place) => finding('not_readable', 'b', place));
    const other = finding('not_readable', 'c', '6');
    expect(joined([...places, ...changed, other])).to.deep.equal([
      ...changed,
      finding('not_readable', 'b (and 2 more up to 5)', '3'),
      other,
    ]);
  });
});
