import { render } from 'preact';
import { openTabStorage } from '../shared/tab-storage.js';
import { Api, askMe } from './api/client.js';
import { Session } from './api/session.js';
import { LiveStore } from './logic/live-store.js';
import { Console } from './shell/app.js';
import { applyPreferences } from './shell/preferences.js';
import './styles/theme.css';
import './styles/frame.css';
import './styles/parts.css';
import './styles/screens.css';

applyPreferences();
const session = new Session(
  openTabStorage(() => sessionStorage),
  askMe,
);
render(<Console api={new Api(session)} live={new LiveStore()} />, document.querySelector('#page') as Element);
void session.restore();
