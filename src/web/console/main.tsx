import { render } from 'preact';

render(<h1>Seckill console</h1>, document.querySelector('#page') as Element);
