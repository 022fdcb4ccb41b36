import { expect } from 'chai';
import { languageFor, localeFor } from '../../../../web/console/i18n/language.js';
import { en } from '../../../../web/console/i18n/en.js';
import { zh } from '../../../../web/console/i18n/zh.js';
import { cleaned, lookUpsOf } from '../../../../web/console/logic/look-up.js';
import { boundTo, filterIn, isFiltered, queryOf, timeOf } from '../../../../web/console/logic/query.js';
import { pathOf, placeOf, routeOf, type Route } from '../../../../web/console/logic/routes.js';
import { rowWindow } from '../../../../web/console/logic/window.js';

describe('addresses of console screens', () => {
  const ROUTES: readonly Route[] = [
    { screen: 'live' },
    { screen: 'sales', tab: 'all' },
    { screen: 'sale', saleId: '41' },
    { screen: 'purchases', id: null },
    { screen: 'purchases', id: 'a/b?c#d%' },
    { screen: 'messages', tab: 'halves' },
    { screen: 'dead-letters', deadLetterId: '17' },
    { screen: 'reconcile', tab: 'jobs', runId: null },
    { screen: 'reconcile', tab: 'runs', runId: '9' },
    { screen: 'rules', tab: 'in-force' },
    { screen: 'health' },
  ];

  it('lead back to their screen', () => {
    for (const route of ROUTES) expect(routeOf(pathOf(route)), pathOf(route)).to.deep.equal(route);
  });

  it('show the live screen if there is no path, and the first tab if there is no tab name', () => {
    expect(['/console', '/console/', '/console/messages', '/console/reconcile'].map(routeOf)).to.deep.equal([
      { screen: 'live' },
      { screen: 'live' },
      { screen: 'messages', tab: 'lag' },
      { screen: 'reconcile', tab: 'runs', runId: null },
    ]);
  });

  it('treat a tab, or a panel over a screen, as the same place', () => {
    const placeAt = (path: string): string => placeOf(routeOf(`/console/${path}`));
    expect(placeAt('dead-letters/17')).to.equal(placeAt('dead-letters'));
    expect(placeAt('reconcile/runs/9')).to.equal(placeAt('reconcile/jobs'));
    expect(placeAt('rules/json')).to.equal(placeAt('rules'));
    const others = ['live', 'sales', 'sales/41', 'sales/42', 'purchases', 'purchases/x', 'audit'].map(placeAt);
    expect(new Set(others).size).to.equal(others.length);
  });

  it('lead to no screen if they are unknown', () => {
    for (const path of [
      '/console/x',
      '/console/live/x',
      '/console/messages/x',
      '/console/sales/1/2',
      '/console/reconcile/x/y',
      '/console/purchases/%E0%A4%A/x',
    ]) {
      expect(routeOf(path).screen, path).to.equal('unknown');
    }
    expect(routeOf('/console/purchases/100%')).to.deep.equal({ screen: 'purchases', id: '100%' });
  });
});

describe('text pasted into the search', () => {
  it('is stripped of blanks, quotes and the rest of a traceparent', () => {
    expect(cleaned('  "order-1", ')).to.equal('order-1');
    expect(cleaned('00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01')).to.equal(
      '4bf92f3577b34da6a3ce929d0e0e4736',
    );
  });

  it('may be the id of several kinds of things, a purchase first', () => {
    expect(lookUpsOf('41').map(({ kind }) => kind)).to.deep.equal([
      'purchase',
      'user',
      'sale',
      'dead_letter',
      'message',
    ]);
    expect(lookUpsOf('auth0|507f').map(({ kind }) => kind)).to.deep.equal(['user']);
    expect(lookUpsOf('order-1').map(({ kind }) => kind)).to.deep.equal(['purchase', 'user', 'message']);
    expect(lookUpsOf('two words')).to.deep.equal([]);
    expect(lookUpsOf('')).to.deep.equal([]);
  });
});

describe('filters in the address', () => {
  it('leave out empty values', () => {
    expect(queryOf({ state: 'parked', saleId: '', limit: 5, after: null, all: true, key: undefined })).to.equal(
      '?state=parked&limit=5&all=true',
    );
    expect(queryOf({ saleId: '' })).to.equal('');
  });

  it('are read back without names that the screen does not know', () => {
    const filter = filterIn('state=parked&token=secret&text=a%26b', ['state', 'text', 'sku']);
    expect(filter).to.deep.equal({ state: 'parked', text: 'a&b', sku: '' });
    expect([isFiltered(filter), isFiltered({ sku: '' })]).to.deep.equal([true, false]);
  });

  it('are fixed at the time of the search, or at an earlier chosen time', () => {
    const nowMs = Date.UTC(2026, 10, 11, 12);
    const until = '2026-11-11T12:00:00.000Z';
    expect(boundTo({ saleId: '7', text: '' }, nowMs)).to.deep.equal({ saleId: '7', until });
    expect(boundTo({ until: '2026-11-12T00:00:00.000Z' }, nowMs)).to.deep.equal({ until });
    const earlier = '2026-11-11T11:59:59.000Z';
    expect(boundTo({ until: earlier }, nowMs)).to.deep.equal({ until: earlier });
  });

  it('accept a time or an age', () => {
    const nowMs = Date.UTC(2026, 10, 11, 12);
    expect(timeOf('2h', nowMs)).to.equal('2026-11-11T10:00:00.000Z');
    expect(timeOf('-3d', nowMs)).to.equal('2026-11-08T12:00:00.000Z');
    expect(timeOf('2026-11-11T10:00:00Z', nowMs)).to.equal('2026-11-11T10:00:00.000Z');
    expect(timeOf('  ', nowMs)).to.equal('');
    for (const none of ['soon', '2x', '05.12.2026', '2026-02-30T10:00', '2026-13-01', '2026-11-11 at 10']) {
      expect(timeOf(none, nowMs), none).to.equal(null);
    }
    expect(timeOf('2026-11-11T10:00', nowMs), 'in the zone of the browser').to.equal(
      new Date(2026, 10, 11, 10).toISOString(),
    );
  });
});

describe('long list', () => {
  it('draws only the rows in view, but is as high as all rows', () => {
    const { from, to, abovePx, belowPx } = rowWindow(10_000, 37, 37 * 5_000, 740);
    expect([from, to]).to.deep.equal([4_988, 5_032]);
    expect(abovePx + (to - from) * 37 + belowPx).to.equal(10_000 * 37);
  });

  it('stays within its rows, even if it becomes shorter than its scroll position', () => {
    expect(rowWindow(100, 37, 0, 740).from).to.equal(0);
    expect(rowWindow(100, 37, 100 * 37, 740)).to.include({ to: 100, belowPx: 0 });
    const shorter = rowWindow(5, 37, 9_999, 740);
    expect(shorter.from).to.be.at.most(4);
    expect(shorter.to).to.equal(5);
  });
});

describe('languages', () => {
  it('are Chinese if the browser prefers it, otherwise English', () => {
    expect([['zh-TW', 'en'], ['fr-FR', 'zh-CN'], ['de-DE'], []].map(languageFor)).to.deep.equal([
      'zh',
      'zh',
      'en',
      'en',
    ]);
  });

  it("format figures for the reader's region if it uses the language", () => {
    expect(localeFor('en', ['de-DE', 'en-US'])).to.equal('en-US');
    expect(localeFor('en', ['de-DE'])).to.equal('en-GB');
    expect(localeFor('zh', ['zh-HK', 'en-US'])).to.equal('zh-HK');
  });

  it('leave no English text in the Chinese dictionary', () => {
    const names = /^(Seckill|SKU|Key|Broker|Redis|MySQL|RocketMQ|API|Worker|Keeper|JSON|CSV|\+?\W*)$/;
    const left: string[] = [];
    const compare = (one: object, other: object, path: string): void => {
      for (const [name, text] of Object.entries(one)) {
        const translated = (other as Record<string, unknown>)[name];
        if (typeof text === 'object') compare(text as object, translated as object, `${path}${name}.`);
        else if (typeof text === 'string' && text === translated && !names.test(text)) left.push(path + name);
      }
    };
    compare(en, zh, '');
    expect(left).to.deep.equal([]);
  });
});
