import { expect } from 'chai';
import { createFormat } from '../../../../web/console/logic/format.js';

const AT_MS = Date.UTC(2026, 10, 11, 19, 0, 3, 45);

describe('figures and times of the console', () => {
  const english = createFormat('en-GB', 'Europe/Berlin');
  const chinese = createFormat('zh-CN', 'Asia/Shanghai');

  it('appear in the zone of the browser, with UTC next to it', () => {
    expect(english.time(AT_MS)).to.equal('20:00:03');
    expect(english.timeWithMs(AT_MS)).to.equal('20:00:03.045');
    expect(chinese.time(AT_MS)).to.equal('03:00:03');
    expect(english.utc(AT_MS)).to.equal('2026-11-11 19:00:03.045 UTC');
  });

  it('name the year only if it is not the current year', () => {
    expect(english.dateTime(AT_MS, AT_MS)).to.equal('11 Nov, 20:00:03');
    expect(english.dateTime(AT_MS, AT_MS + 366 * 86_400_000)).to.equal('11 Nov 2026, 20:00:03');
    const newYear = Date.UTC(2026, 11, 31, 23, 30);
    expect(english.dateTime(newYear, newYear + 86_400_000), 'in Berlin it is next year already').to.equal(
      '1 Jan, 00:30:00',
    );
  });

  it('replace the times in a sentence of the api and nothing else', () => {
    const sentence = 'Parked at 2020-11-11T19:00:03.045Z, as sale 2026-11-11.';
    expect(english.withTimes(sentence)).to.equal('Parked at 11 Nov 2020, 20:00:03, as sale 2026-11-11.');
  });

  it('decide by the zone, not by UTC, whether two times share a day', () => {
    expect(english.dayKey(AT_MS)).to.equal('2026-11-11');
    expect(chinese.dayKey(AT_MS)).to.equal('2026-11-12');
  });

  it('show a duration with its two largest units', () => {
    const lengths = [0, 340, 1_240, 9_999, 62_000, 3_600_000, 7_500_000, 90_000_000, -2_000];
    expect(lengths.map(english.duration)).to.deep.equal([
      '0ms',
      '340ms',
      '1.2s',
      '9.9s',
      '1m 2s',
      '1h',
      '2h 5m',
      '1d 1h',
      '−2s',
    ]);
  });

  it('show money in its currency, or a plain figure without a currency', () => {
    expect(english.money(1_999, 'EUR')).to.equal('€19.99');
    expect(chinese.money(123_456, 'CNY')).to.equal('¥1,234.56');
    expect(english.money(1_999, null)).to.equal('19.99');
  });

  it('say how long ago, or in how long, something happens', () => {
    expect(english.relative(-65_000)).to.match(/^1 ?min\.? ago$/);
    expect(english.relative(7_300_000)).to.match(/^in 2 ?hr?\.?s?$/);
    expect(chinese.relative(-3_000)).to.equal('3秒前');
  });
});
