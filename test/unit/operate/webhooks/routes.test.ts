import { expect } from 'chai';
import request from 'supertest';
import type { Webhook } from '../../../../src/contract/webhooks.js';
import { partial } from '../../../helpers/partial.js';
import { bearer, FakeServices, startServer, type Started } from '../../http/http-harness.js';

const ENDPOINT: Webhook = {
  endpointId: '3',
  url: 'https://shop.example/events',
  events: ['order.paid'],
  state: 'active',
  failingSince: '2030-01-01T00:00:00.000Z',
  lastError: 'status 500',
  previousSecretUntil: null,
  createdAt: '2029-01-01T00:00:00.000Z',
};
const WITH_SECRET: Webhook = { ...ENDPOINT, secret: 'whsec_once' };

describe('admin webhooks', () => {
  let server: Started;
  let calls: unknown[];
  const admin = bearer('boss', ['admin']);
  const path = '/admin/v1/webhooks';
  const ask = (method: 'get' | 'post' | 'patch' | 'delete', rest = '') =>
    request(server.operatorsUrl)[method](`${path}${rest}`).set('authorization', admin);

  beforeEach(async () => {
    calls = [];
    const found = (endpointId: string) => endpointId === '3';
    server = await startServer(
      new FakeServices({
        webhooks: partial({
          list: async () => [ENDPOINT],
          create: async (...args) => (
            calls.push(args),
            args[0].url.endsWith('/full') ? 'There are too many.' : WITH_SECRET
          ),
          edit: async (...args) => (
            calls.push(args),
            !found(args[0]) ? null : args[1].url ? 'It is too soon.' : args[1].newSecret ? WITH_SECRET : ENDPOINT
          ),
          remove: async (...args) => (calls.push(args), found(args[0])),
        }),
        webhookDeliveries: partial({ resend: async (...args) => (calls.push(args), args[1].length) }),
        flawOfWebhook: (url) => (url.startsWith('https://') ? null : 'must begin with https://'),
        testWebhook: async (id) => (found(id) ? { outcome: 'failed', detail: 'ECONNREFUSED' } : null),
      }),
    );
  });
  afterEach(() => server.stop());

  it('shows a secret only when it is new', async () => {
    expect((await ask('get').expect(200)).text).to.not.include('whsec_');
    const made = await ask('post').send({ url: ENDPOINT.url, events: ENDPOINT.events }).expect(201);
    expect(made.body).to.include({ endpointId: '3', secret: 'whsec_once' });
    const edited = await ask('patch', '/3').send({ state: 'paused' }).expect(200);
    expect(edited.body).to.not.have.property('secret');
    const renewed = await ask('patch', '/3').send({ newSecret: true }).expect(200);
    expect(renewed.body).to.include({ secret: 'whsec_once' });
  });

  it('says what is wrong with an endpoint, and changes nothing', async () => {
    const bad = [
      { url: 'http://shop.example', events: ['order.paid'] },
      { url: ENDPOINT.url, events: [] },
      { url: ENDPOINT.url, events: ['order.lost'] },
      { url: ENDPOINT.url, events: ['order.paid'], secret: 'mine' },
    ];
    for (const body of bad) await ask('post').send(body).expect(400);
    await ask('patch', '/3').send({}).expect(400);
    await ask('patch', '/3').send({ url: 'http://shop.example' }).expect(400);
    expect(calls).to.deep.equal([]);
    const full = await ask('post')
      .send({ url: 'https://shop.example/full', events: ['order.paid'] })
      .expect(409);
    expect(full.body).to.include({ code: 'wrong_state', detail: 'There are too many.' });
    const refused = await ask('patch', '/3').send({ newSecret: true, url: ENDPOINT.url }).expect(409);
    expect(refused.body).to.include({ code: 'wrong_state', detail: 'It is too soon.' });
  });

  it('answers 404 for an unknown endpoint', async () => {
    await ask('patch', '/4').send({ state: 'paused' }).expect(404);
    await ask('delete', '/4').expect(404);
    expect((await ask('post', '/4/test').expect(404)).body).to.include({ code: 'webhook_not_found' });
  });

  it('removes, tests and resends in the name of the operator', async () => {
    await ask('delete', '/3').expect(204);
    const tested = await ask('post', '/3/test').expect(200);
    expect(tested.body).to.deep.equal({ outcome: 'failed', detail: 'ECONNREFUSED' });
    const resent = await ask('post', '/3/resend')
      .send({ deliveryIds: ['7', '8'] })
      .expect(200);
    expect(resent.body).to.deep.equal({ resent: 2 });
    expect(calls).to.deep.equal([
      ['3', 'boss'],
      ['3', ['7', '8'], 'boss'],
    ]);
  });
});
