// Loaded before programs: gives all of them the same pid and network card, as containers have.

import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';

const PID = 7;
const CARD = {
  address: '172.17.0.2',
  netmask: '255.255.0.0',
  cidr: '172.17.0.2/16',
  family: 'IPv4',
  mac: '02:42:ac:11:00:02',
  internal: false,
};

Object.defineProperty(process, 'pid', { value: PID });
os.networkInterfaces = () => ({ eth0: [{ ...CARD }] });
syncBuiltinESMExports();
console.log(`identity: pid ${process.pid}, mac ${os.networkInterfaces().eth0?.[0]?.mac}`);
