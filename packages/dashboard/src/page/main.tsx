/** What the browser runs. */
import { render } from 'preact'
import { followState } from './data/live-state.ts'
import { followLinks } from './data/location.ts'
import { Page } from './page.tsx'

const root = document.getElementById('page')
if (root === null) throw new Error('the shell has no #page')
// The answer is under way while the page is drawn for the first time.
void followState()
followLinks()
render(<Page />, root)
