import { expect } from 'chai';
import fc from 'fast-check';
import { isoTime, readTime, spanReversed } from '../../../src/core/time.js';

const NOW_MS = Date.UTC(2030, 0, 1);
/** Texts that `Date.parse` would read as a time other than intended, or in the time zone of this machine. */
const GUESSED = [
  '05.12.2026 20:00',
  '10.12.2026',
  '12/05/2026',
  'sale 10',
  '10',
  '2026',
  '2026-12',
  '2026-12-05',
  '2026-12-05T20:00:00',
  '2026-12-05 20:00:00Z',
  '2027-02-30T20:00:00Z',
  '2026-11-31T20:00:00+01:00',
  'Sat, 05 Dec 2026 20:00:00 GMT',
  'Dec 5, 2026 UTC',
  '1796500800000',
  '+012026-12-05T20:00:00Z',
  '0118-12-05T20:00:00Z',
  '1999-12-31T23:59:59Z',
  '2100-01-01T00:00:00Z',
];

describe('typed time', () => {
  it('accepts ISO 8601 with a time zone and a valid day and year', () => {
    for (const text of GUESSED) {
      expect(isoTime.safeParse(text).success, text).to.equal(false);
      expect(readTime(text, NOW_MS), text).to.equal(null);
    }
    expect(readTime('2026-12-05T20:00:00+01:00', NOW_MS)).to.equal(Date.UTC(2026, 11, 5, 19));
    expect(readTime('2028-02-29T20:00:00.5Z', NOW_MS)).to.equal(Date.UTC(2028, 1, 29, 20, 0, 0, 500));
  });

  it('accepts `now` and a time relative to now', () => {
    const read = (text: string): number | null => readTime(text, NOW_MS);
    expect([read('now'), read('+0s'), read('+10m'), read('-1d')]).to.deep.equal([
      NOW_MS,
      NOW_MS,
      NOW_MS + 600_000,
      NOW_MS - 86_400_000,
    ]);
    for (const none of ['2h', '+2w', '-', '+1234567s', 'Now', '+999999d', '-999999d']) {
      expect(read(none), none).to.equal(null);
    }
  });

  it('reads every time of this century in any zone, and refuses any other text', () => {
    const times = fc.date({
      min: new Date(Date.UTC(2000, 0)),
      max: new Date(Date.UTC(2100, 0) - 1),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(times, fc.integer({ min: -14 * 60, max: 14 * 60 }), (at, offset) => {
        const local = new Date(at.getTime() + offset * 60_000).toISOString().slice(0, -1);
        const [hours, minutes] = [Math.trunc(Math.abs(offset) / 60), Math.abs(offset) % 60].map((n) =>
          `${n}`.padStart(2, '0'),
        );
        expect(readTime(`${local}${offset < 0 ? '-' : '+'}${hours}:${minutes}`, NOW_MS)).to.equal(at.getTime());
      }),
    );
    fc.assert(
      fc.property(fc.string(), (text) => {
        if (!/^(now|[+-]\d+[smhd]|\d{4}-\d\d-\d\dT.*)$/.test(text)) expect(readTime(text, NOW_MS)).to.equal(null);
      }),
    );
  });
});

describe('time range', () => {
  it('counts as reversed if its end is before its start', () => {
    expect(spanReversed({ from: 2, to: 1 })).to.deep.equal({ from: 'from', to: 'to' });
    expect(spanReversed({ since: 2, until: 1, from: 1, to: 1 })).to.deep.equal({ from: 'since', to: 'until' });
    for (const fine of [
      {},
      { from: 2 },
      { to: 1 },
      { from: 1, to: 2 },
      { opensFrom: 3, opensTo: 3 },
      { from: 2, to: undefined },
    ]) {
      expect(spanReversed(fine), JSON.stringify(fine)).to.equal(null);
    }
  });
});
