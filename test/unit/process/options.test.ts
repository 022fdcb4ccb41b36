import { expect } from 'chai';
import { UsageError } from '../../../src/process/cli-error.js';
import { checkSpan, operatorName, parseTime } from '../../../src/process/options.js';

describe('command-line options', () => {
  it('accepts a time in ISO 8601, `now`, and a time relative to now', () => {
    expect(parseTime('2030-01-31T20:00:00Z')).to.equal(Date.UTC(2030, 0, 31, 20));
    expect(parseTime('-1d')).to.be.closeTo(Date.now() - 86_400_000, 5000);
    expect(() => parseTime('2h')).to.throw(/must be ISO 8601 with a zone/);
  });

  it('reports a usage error if an end is before its beginning', () => {
    expect(() => checkSpan({ opensFrom: 2, opensTo: 1 })).to.throw(
      UsageError,
      '--opens-to must not be earlier than --opens-from.',
    );
    checkSpan({ from: 1 });
  });

  it('names the operator for the audit log', () => {
    expect(operatorName()).to.have.length.above(0);
  });
});
