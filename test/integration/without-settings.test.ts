import { expect } from 'chai';
import { runCommand } from '../chaos/harness/commands.js';

/** Removes all our settings, like a shell on a server. */
const { PATH, HOME } = process.env;

// Runs in the checkout, where a developer may have started a stack.
describe('programs without settings', () => {
  const needed = {
    api: ['MYSQL_URL', 'REDIS_URL', 'ROCKETMQ_ENDPOINT', 'JWT_SECRET'],
    worker: ['MYSQL_URL', 'REDIS_URL', 'ROCKETMQ_ENDPOINT'],
    keeper: ['MYSQL_URL', 'REDIS_URL', 'ROCKETMQ_ENDPOINT'],
    migrate: ['MYSQL_URL'],
    'rules status': ['MYSQL_URL', 'REDIS_URL'],
  };
  for (const [command, keys] of Object.entries(needed)) {
    it(`names each address that ${command} lacks, and connects to no other server`, async () => {
      for (const NODE_ENV of ['', 'production']) {
        const { code, stderr } = await runCommand(command.split(' '), { PATH, HOME, NODE_ENV });
        expect(code, stderr).to.equal(2);
        for (const key of keys) expect(stderr).to.contain(`${key} is not set: `);
        expect(stderr).not.to.contain('starting with these servers');
      }
    });
  }
});
