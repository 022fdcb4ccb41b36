import { expect } from 'chai';
import { loadConfig } from '../../../src/core/config/load.js';
import { serversOf } from '../../../src/process/servers.js';

describe('servers in the start log', () => {
  const named = (REDIS_URL: string, more: Record<string, string> = {}): Record<string, string> =>
    serversOf(
      loadConfig(['mysql', 'redis', 'rocketmq', 'repair'], {
        MYSQL_URL: 'mysql://shop:s3cret%40x@db.internal:3306/seckill',
        ROCKETMQ_ENDPOINT: 'broker:8081',
        REDIS_URL,
        ...more,
      }),
    );

  it('appear with their address and without a login', () => {
    expect(named('redis://user:s3cret@cache:6379/2')).to.deep.equal({
      mysql: 'db.internal:3306/seckill',
      redis: 'cache:6379',
      rocketmq: 'broker:8081',
    });
    const urls = ['redis+sentinel://u:s3cret@a:1,b:2/main', 'redis+cluster://u:s3cret@a:1,b:2', 'rediss://:s3cret@c:1'];
    for (const url of urls)
      expect(JSON.stringify(named(url)))
        .to.match(/:1\b/)
        .and.not.contain('s3cret');
  });

  it('include the name server if there is one', () => {
    expect(named('redis://cache', { NAMESRV_ADDR: 'names:9876' })).to.include({ nameServer: 'names:9876' });
  });
});
