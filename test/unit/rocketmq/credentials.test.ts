import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import sinon from 'sinon';
import { loadConfig, type Environment } from '../../../src/core/config/load.js';
import { brokerAccessOf, signedHeaders } from '../../../src/rocketmq/credentials.js';
import { useTempFolder } from '../stack/temp-folder.js';

const accessIn = (env: Environment) => brokerAccessOf(loadConfig(['brokerAccess'], env).brokerAccess);

describe('RocketMQ credentials', () => {
  const folder = useTempFolder();

  it('are absent without a key, and are read again for each signature', () => {
    expect(accessIn({}).credentials).to.equal(null);
    const clock = sinon.useFakeTimers({ toFake: ['performance'] });
    try {
      const file = (name: string, text: string): string => {
        const path = join(folder(), name);
        writeFileSync(path, text);
        return path;
      };
      const { credentials } = accessIn({
        ROCKETMQ_ACCESS_KEY: 'k',
        ROCKETMQ_ACCESS_SECRET_FILE: file('secret', 'old'),
        ROCKETMQ_SESSION_TOKEN_FILE: file('token', 'of today'),
      });
      expect({ ...credentials }).to.deep.equal({ accessKey: 'k', accessSecret: 'old', securityToken: 'of today' });
      file('secret', 'new');
      file('token', 'of tomorrow');
      clock.tick(5_000);
      expect({ ...credentials }).to.deep.equal({ accessKey: 'k', accessSecret: 'new', securityToken: 'of tomorrow' });
    } finally {
      clock.restore();
    }
  });

  it('are shared by equal configurations, so that connections are shared', () => {
    const { brokerAccess } = loadConfig(['brokerAccess'], { ROCKETMQ_TLS: 'on' });
    expect(brokerAccessOf(brokerAccess)).to.equal(brokerAccessOf(brokerAccess));
    expect(brokerAccessOf({ ...brokerAccess }).tls).not.to.equal(brokerAccessOf(brokerAccess).tls);
  });

  it('send a token with the signature, but no empty token', () => {
    const credentials = { accessKey: 'k', accessSecret: 's' };
    expect(signedHeaders(credentials)).to.have.all.keys('x-mq-date-time', 'authorization');
    expect(signedHeaders({ ...credentials, securityToken: 't' })).to.include({ 'x-mq-session-token': 't' });
    expect(accessIn({ ROCKETMQ_ACCESS_KEY: 'k', ROCKETMQ_ACCESS_SECRET: 's' }).credentials?.securityToken).to.equal(
      undefined,
    );
  });

  it('use TLS for the proxy only, or also for name servers and brokers', () => {
    const byTls = (word: string): boolean[] => {
      const { tls, adminTls } = accessIn({ ROCKETMQ_TLS: word });
      return [tls !== null, adminTls !== null];
    };
    expect(['off', 'grpc', 'on'].map(byTls)).to.deep.equal([
      [false, false],
      [true, false],
      [true, true],
    ]);
  });
});
