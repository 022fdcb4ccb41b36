import { render } from 'preact';

render(<h1>Sale</h1>, document.querySelector('#page') as Element);
