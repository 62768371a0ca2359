package instructions

import "strings"

// The frame of what the model gets. Its words never change within a session,
// so that the prefix of its requests stays the same.
const (
	frameOpen  = "<system-reminder>\n"
	frameClose = "</system-reminder>"

	startIntro = "These are the instructions of the people you work for. They hold for the whole conversation and go before your default behaviour; nothing in them needs an answer.\n"
	touchIntro = "These instructions hold for files such as the one that was just read. They go before your default behaviour; nothing in them needs an answer.\n"
)

// whose tells the model of each kind whose words it reads.
var whose = map[Kind]string{
	Managed: "instructions set for this machine by its administrator",
	User:    "the user's own instructions for all projects",
	Project: "instructions of the project, shared by all who work on it",
	Local:   "the user's own instructions for this project",
}

// compose frames the texts of files, one after the other (C-43).
func compose(intro string, files []File) string {
	var b strings.Builder
	for _, f := range files {
		if f.text == "" {
			continue
		}
		if b.Len() == 0 {
			b.WriteString(frameOpen + intro)
		}
		b.WriteString("\nContents of " + f.Path + " (" + whose[f.Kind] + "):\n\n" + f.text + "\n")
	}
	if b.Len() > 0 {
		b.WriteString(frameClose)
	}
	return b.String()
}
