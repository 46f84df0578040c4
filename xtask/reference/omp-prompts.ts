// Bun preload: R13's imports of the ten prompts that a summary is made with get the files of the folder OUR_PROMPTS instead,
// so that the texts of whole requests can be compared byte for byte. Its other prompts stay its own.
import { plugin } from "bun";
import { readFileSync } from "node:fs";
import { join, sep } from "node:path";

const folder = process.env.OUR_PROMPTS;
if (!folder) throw new Error("OUR_PROMPTS must name the prompts folder");

const compaction = [
	"branch-summary",
	"branch-summary-context",
	"branch-summary-preamble",
	"compaction-short-summary",
	"compaction-summary",
	"compaction-summary-context",
	"compaction-turn-prefix",
	"compaction-update-summary",
];
const replaced = new Set([
	"system/file-operations.md",
	"system/summarization-system.md",
	...compaction.map(name => `compaction/${name}.md`),
]);

plugin({
	name: "our-prompts",
	setup(build) {
		build.onLoad({ filter: /[\\/]prompts[\\/](compaction|system)[\\/][^\\/]+\.md$/ }, ({ path }) => {
			const name = path.split(sep).slice(-2).join("/");
			// A missing file of ours throws here: a comparison with R13's own words would mean nothing.
			const text = readFileSync(replaced.has(name) ? join(folder, name) : path, "utf8");
			return { contents: `export default ${JSON.stringify(text)};`, loader: "js" };
		});
	},
});
