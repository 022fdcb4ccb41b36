import { expect } from 'chai';
import request from 'supertest';
import type { Route } from '../../../src/http/route.js';
import { ROUTES } from '../../../src/http/routes/index.js';
import { bearer, FakeServices, startServer, type Started } from './http-harness.js';

/** Every service of FakeServices throws, which would be a 500: an answer before it shows that nothing was called. */
describe('access to admin routes', () => {
  let fake: FakeServices;
  let server: Started;
  beforeEach(async () => {
    fake = new FakeServices();
    server = await startServer(fake);
  });
  afterEach(() => server.stop());

  const adminRoutes = ROUTES.filter(({ path }) => path.startsWith('/admin/'));

  it('is declared for each of them', () => {
    expect(adminRoutes.length).to.be.greaterThan(20);
    for (const { method, path, access } of adminRoutes) expect(access, `${method} ${path}`).to.equal('admin');
  });

  it('needs a token, else 401; and the role, exactly, else 403: no service is called [S5]', async () => {
    const expectRefusals = async ({ method, path }: Route): Promise<void> => {
      const ask = (): request.Test =>
        request(server.operatorsUrl)
          [method](path.replaceAll(/\{\w+\}/g, '7'))
          .send({});
      const { body } = await ask();
      expect([body.status, body.code], `${method} ${path}`).to.deep.equal([401, 'unauthorized']);
      for (const roles of [[], ['Admin'], ['admins']]) {
        const { body } = await ask().set('authorization', bearer('u1', roles));
        expect([body.status, body.code], `${method} ${path}`).to.deep.equal([403, 'role_needed']);
      }
    };
    await Promise.all(adminRoutes.map(expectRefusals));
    expect(fake.bugs).to.deep.equal([]);
  });
});
