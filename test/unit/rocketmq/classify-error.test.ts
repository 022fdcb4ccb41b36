import { expect } from 'chai';
import {
  BadRequestException,
  InternalErrorException,
  ProxyTimeoutException,
  TooManyRequestsException,
  UnsupportedException,
} from 'rocketmq-client-nodejs';
import {
  isCertainlyNotStored,
  isForgottenTransaction,
  mayGoToAnotherBroker,
} from '../../../src/rocketmq/classify-error.js';

const grpcError = (code: number, details: string): Error =>
  Object.assign(new Error(`${code} SOME_NAME: ${details}`), { code, details });

const DEAD_BROKER = 'RemotingConnectException: connect to 127.0.0.1:20911 failed';
const LOST_BROKER = 'RemotingSendRequestException: send request to 127.0.0.1:20911 failed';

describe('classify-error: failed sends', () => {
  const notStored: [string, unknown][] = [
    ['refused by the client', new TypeError('Message body size exceeds the threshold')],
    ['a stopped producer', new Error('Producer is not running now')],
    ['a bad request', new BadRequestException(40_001, 'illegal topic')],
    ['an empty body', new UnsupportedException(41_302, 'message body is empty')],
    ['an overloaded broker', new TooManyRequestsException(42_900, 'slow down')],
    ['a full disk', new InternalErrorException(50_001, 'service not available now. the disk is full')],
    ['a busy broker', new InternalErrorException(50_001, '[REJECTREQUEST]system busy, start flow control for a while')],
    ['a dead broker behind a proxy', new InternalErrorException(50_001, DEAD_BROKER)],
    ['nothing listens', grpcError(14, 'No connection established. Last error: connect ECONNREFUSED 127.0.0.1:1')],
    ['no such name', grpcError(14, 'Name resolution failed for target dns:nowhere:1')],
    ['a connection that never came up', grpcError(4, 'Deadline exceeded after 3.0s,Waiting for LB pick')],
  ];
  const unknown: [string, unknown][] = [
    ['no answer in time', grpcError(4, 'Deadline exceeded after 3.001s,remote_addr=127.0.0.1:18081')],
    ['a connection that broke', grpcError(14, 'Connection dropped')],
    ['a reset', grpcError(14, 'read ECONNRESET')],
    ['a cancelled call', grpcError(1, 'Call cancelled')],
    ['a connection to a broker that broke', new InternalErrorException(50_001, LOST_BROKER)],
    ['an inner error of the broker', new InternalErrorException(50_001, 'something else')],
    ['a slow disk or replica', new ProxyTimeoutException(50_401, 'flush disk timeout')],
    ['a request time-out', new UnsupportedException(40_800, 'request timeout')],
    ['an unknown error', new Error('?')],
    ['no error at all', 'a string'],
  ];

  for (const [what, error] of notStored) {
    it(`certainly not stored: ${what}`, () => expect(isCertainlyNotStored(error)).to.equal(true));
  }
  for (const [what, error] of unknown) {
    it(`may be stored: ${what} [T6]`, () => expect(isCertainlyNotStored(error)).to.equal(false));
  }

  it('lets a message go to another broker only if this broker certainly did not store it', () => {
    const another = notStored.filter(([, error]) => mayGoToAnotherBroker(error)).map(([what]) => what);
    expect(another).to.deep.equal([
      'a full disk',
      'a dead broker behind a proxy',
      'nothing listens',
      'no such name',
      'a connection that never came up',
    ]);
    expect(unknown.filter(([, error]) => mayGoToAnotherBroker(error))).to.deep.equal([]);
  });

  it('recognises that the proxy forgot a half message after it was first ended [T4]', () => {
    const error = new InternalErrorException(50_001, 'ProxyException: cannot found transaction data');
    expect(isForgottenTransaction(error)).to.equal(true);
    expect(isForgottenTransaction(new Error('other'))).to.equal(false);
  });
});
