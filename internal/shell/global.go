package shell

import (
	"slices"
	"strings"
)

// globals are the options that a program takes before its subcommand.
type globals struct {
	value names // options whose value is the next word, unless it is attached
	alone names // options without a value
	any   bool  // every other option may have a value or none
}

// globalOptions are programs whose subcommand says what they do. Rules that forbid
// "git push" mean "git -C dir push" too. An entry of two words is for a
// subcommand that has subcommands of its own.
var globalOptions = map[string]globals{
	"git":            {value: namesOf("-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source")},
	"docker":         dockerOptions,
	"podman":         dockerOptions,
	"nerdctl":        dockerOptions,
	"docker compose": composeOptions,
	"podman compose": composeOptions,
	"docker-compose": composeOptions,
	"kubectl": {value: namesOf("-n --namespace --context --cluster --kubeconfig --user -s --server --token --as --as-group --as-uid --as-user-extra" +
		" --cache-dir --certificate-authority --client-certificate --client-key --password --profile --profile-output --request-timeout" +
		" --tls-server-name --username -v --v --vmodule --log-flush-frequency --kuberc")},
	"helm": {value: namesOf("--kube-context --kubeconfig -n --namespace --burst-limit --kube-apiserver --kube-as-group --kube-as-user --kube-ca-file" +
		" --kube-tls-server-name --kube-token --qps --registry-config --repository-cache --repository-config --content-cache --color")},
	"npm":       {alone: namesOf("-s --silent -q --quiet -d -dd -ddd --verbose -g --global -f --force -y --yes --json --offline --workspaces -ws --include-workspace-root"), any: true},
	"pnpm":      {alone: namesOf("-s --silent -r --recursive -w --workspace-root -g --global"), any: true},
	"yarn":      {alone: namesOf("-s --silent --verbose --json --offline --frozen-lockfile"), any: true},
	"bun":       {alone: namesOf("--silent --bun -b"), any: true},
	"go":        {value: namesOf("-C")},
	"cargo":     {value: namesOf("--config -Z -C --color --explain")},
	"rustup":    {},
	"systemctl": {value: namesOf("-H --host -M --machine -t --type --state -p --property -P --job-mode -s --signal --kill-whom --kill-value --root --image --image-policy -n --lines -o --output --preset-mode --what --timestamp --message --boot-loader-menu --boot-loader-entry --reboot-argument")},
	"make":      {value: namesOf("-C --directory -f --file --makefile -I --include-dir -o --old-file --assume-old -W --what-if --new-file --assume-new --eval")},
	"gh":        {value: namesOf("-R --repo --hostname")},
	"terraform": {},
	"tofu":      {},
	"aws": {value: namesOf("--profile --region --output --endpoint-url --query --color --ca-bundle --cli-read-timeout --cli-connect-timeout" +
		" --cli-binary-format")},
	"gcloud":  {value: namesOf("--project --account --configuration --format --verbosity --impersonate-service-account --billing-project --flags-file --flatten --access-token-file --trace-token")},
	"apt":     aptOptions,
	"apt-get": aptOptions,
	"pip":     pipOptions,
	"pip3":    pipOptions,
	"poetry":  {value: namesOf("-C --directory -P --project")},
	"uv":      {value: namesOf("--directory --project --config-file --cache-dir --color --allow-insecure-host")},
	"hg":      {value: namesOf("-R --repository --cwd --config --encoding --encodingmode --color --pager")},
}

var (
	dockerOptions = globals{value: namesOf("-c --context -H --host -l --log-level --config --tlscacert --tlscert --tlskey" +
		" --connection --url --identity --root --runroot --storage-driver --storage-opt --cgroup-manager --conmon --events-backend --hooks-dir" +
		" --module --namespace -n --address -a --network-cmd-path --network-config-dir --out --runtime --runtime-flag --ssh --tmpdir --volumepath")}
	composeOptions = globals{value: namesOf("-f --file -p --project-name --profile --env-file --project-directory --workdir --parallel --progress --ansi -c --context -H --host")}
	aptOptions     = globals{value: namesOf("-o --option -c --config-file -t --target-release --default-release -a --host-architecture")}
	pipOptions     = globals{value: namesOf("--python --log --proxy --retries --timeout --exists-action --trusted-host --cert --client-cert --cache-dir --keyring-provider --use-feature --use-deprecated")}
)

// maxReadings bounds the ways in which the options of one command are read.
const maxReadings = 8

// Direct returns a command without the options that its program takes before the
// subcommand: "git -C dir push" is "git push". Where it is not known whether an
// option has a value there are several readings; there is none of a command
// without such options. It is for rules that forbid: a reading may be wrong.
func Direct(words []Word) (out [][]Word) {
	if len(words) < 3 || !words[0].Literal || !optionLike(words[1].Text) && !optionLike(words[2].Text) {
		return nil
	}
	name := words[0].Text
	own, ok := globalOptions[name]
	if !ok {
		return nil
	}
	for _, from := range own.skip(words, 1) {
		direct := words
		if from > 1 {
			direct = append([]Word{words[0]}, words[from:]...)
		}
		if below, ok := globalOptions[name+" "+direct[1].Text]; ok {
			for _, next := range below.skip(direct, 2) {
				if next > 2 {
					out = append(out, append(slices.Clone(direct[:2]), direct[next:]...))
				}
			}
		}
		if from > 1 {
			out = append(out, direct)
		}
	}
	return out
}

func optionLike(text string) bool {
	return len(text) > 1 && (text[0] == '-' || text[0] == '+') && text != "--"
}

// skip returns where the subcommand may stand that is looked for from a word on.
func (g globals) skip(words []Word, from int) (at []int) {
	starts := []int{from}
	for len(starts) > 0 && len(at) < maxReadings {
		i := starts[0]
		starts = starts[1:]
		if i >= len(words) {
			continue
		}
		text := words[i].Text
		switch {
		case !optionLike(text):
			if !slices.Contains(at, i) {
				at = append(at, i)
			}
		case strings.Contains(text, "=") || text[0] == '+' || g.alone.has(text):
			starts = append(starts, i+1)
		case g.value.has(text):
			starts = append(starts, i+2)
		case g.any && len(starts) < maxReadings:
			starts = append(starts, i+1, i+2)
		default:
			starts = append(starts, i+1)
		}
	}
	return at
}
