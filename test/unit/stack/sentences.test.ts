import { expect } from 'chai';
import { assertDiskSpace } from '../../../deploy/local/stack/files.js';
import { StackError } from '../../../deploy/local/stack/stack-error.js';
import { findJava } from '../../../deploy/local/stack/tools.js';
import { useTempFolder } from './temp-folder.js';

describe('the launcher', () => {
  const folder = useTempFolder();

  it('throws one sentence with the searched places if Java is missing', async () => {
    const error = await findJava({ JAVA_HOME: '/nowhere' }).catch((reason: Error) => reason);
    expect(error).to.be.instanceOf(StackError);
    expect((error as Error).message).to.equal(
      'No java found in JAVA_HOME (/nowhere); install a JDK 17 or newer, RocketMQ needs it.',
    );
  });

  it('throws before it starts if the disk has too little space [L3]', () => {
    expect(() => assertDiskSpace(folder(), 1)).to.not.throw();
    expect(() => assertDiskSpace(folder(), Number.MAX_SAFE_INTEGER)).to.throw(
      StackError,
      /MiB left, \d+ MiB are needed/,
    );
  });
});
