import { expect } from 'chai';
import { whyNotOpen } from '../../../deploy/local/wait-until-open.js';
import { welcome } from '../../../deploy/local/welcome.js';

const URLS = {
  url: 'http://127.0.0.1:8080',
  operatorsUrl: 'http://127.0.0.1:9103',
  metricsUrls: ['http://127.0.0.1:9101/metrics'],
};
const PAGES = { buyerUrl: 'http://127.0.0.1:8080/s/7', consoleUrl: 'http://127.0.0.1:9103/console' };
const TOKENS = { token: 't', viewerToken: 'looks', adminToken: 'changes' };
const FACTS = { ...URLS, ...PAGES, ...TOKENS, saleId: '7', title: 'A pen', key: 'k1', traffic: false, faults: false };
const READY = { ready: true, dependencies: [] };
const redis = { name: 'redis', ok: true, detail: 'answers' };
const rocketmq = { name: 'rocketmq', ok: false, detail: 'no route' };

describe('the greeting of npm start', () => {
  const why = (readyz: unknown, sale: unknown): Promise<string | null> =>
    whyNotOpen((path) => Promise.resolve(path === '/readyz' ? readyz : sale), '7');

  it('waits until the api is ready and the sale is open', async () => {
    expect(await why(READY, { state: 'open' })).to.equal(null);
    const notReady = { ready: false, dependencies: [redis, rocketmq] };
    expect(await why(notReady, { state: 'open' })).to.equal('the api is not ready (rocketmq: no route)');
    expect(await why(READY, { state: 'paused' })).to.equal('sale 7 is paused');
    expect(await why(READY, { code: 'loading' })).to.equal('sale 7 is loading');
  });

  it('waits while the api does not answer', async () => {
    const refused = (): Promise<never> => Promise.reject(new Error('fetch failed'));
    expect(await whyNotOpen(refused, '7')).to.equal('the api does not answer (fetch failed)');
  });

  it('sends operators to their own port and buyers to no other', () => {
    const text = welcome({ ...FACTS, simulatedPayments: true });
    expect(text).to.contain('http://127.0.0.1:9103/readyz');
    expect(text).to.match(/^Metrics: +http:\/\/127\.0\.0\.1:9103\/metrics http:\/\/127\.0\.0\.1:9101\/metrics$/m);
    expect(text).not.to.match(/:8080\/(readyz|metrics|openapi)/);
  });

  it('says that payments are simulated only when they are', () => {
    const simulated = welcome({ ...FACTS, simulatedPayments: true });
    expect(simulated).to.contain('payments are simulated').and.contain('/v1/orders/<orderId>/pay');
    const none = welcome({ ...FACTS, simulatedPayments: false });
    expect(none).not.to.contain('simulated').and.not.contain('<orderId>/pay');
    expect(none).to.contain('/v1/orders/<orderId>/cancel');
  });
});
